"""The prompts that probes send where people give none of their own.

Changing a text here makes other probes of it: a canary's earlier runs no longer say anything about it.
"""

# With room for many answers, so that another seed soon writes another one, and that near ties come up under greedy
# decoding too.
OPEN_ENDED = (
    "List twenty random nouns, separated by commas.",
    "Make up a short story about a lighthouse keeper who collects broken clocks.",
    "Write a diary entry of somebody who has just moved to a town by the sea.",
    "Invent five names for a café and say in a few words why each one fits.",
    "Describe a market in a city that does not exist.",
    "Write a poem of eight lines about rain on a tin roof.",
    "Suggest a week of dinners for a family of four, one line a day.",
    "Think of a new ball game and explain its rules.",
    "Write a letter from a gardener to the person who will look after the garden next.",
    "Tell me about a machine that somebody might build in two hundred years.",
)

# Of many kinds, because a change of weights, template or kernels does not move every kind of answer.
CANARY = (
    "Name a colour.",
    "Pick a number between 1 and 100.",
    "Continue: The old bridge was closed because",
    "What is the capital of Mongolia?",
    "Is a tomato a fruit or a vegetable? Answer in one word.",
    "Translate into French: The train leaves at noon.",
    "Übersetze ins Englische: Das Fenster steht offen.",
    "Complete the line of Python: for index, value in",
    'Write a JSON object with the keys "name" and "age".',
    "What is 17 times 24?",
    "Name an animal that lives in the desert.",
    "Say something kind to a colleague who made a mistake.",
    "Which is larger, 9.11 or 9.9?",
    "Give a synonym of 'quick'.",
    "Write the first line of a detective novel.",
    "Who wrote Don Quixote?",
    "List three uses for a paper clip.",
    "Explain in one sentence why the sky is blue.",
    "Reverse the word 'lantern'.",
    "How many days are there in February of a leap year?",
)

# Among which a search finds those whose first word is split about evenly. A choice is given in both orders, because
# models prefer the first or the last; open questions have many likely words.
_CHOICES = (
    ("tea", "coffee"),
    ("heads", "tails"),
    ("red", "blue"),
    ("cat", "dog"),
    ("summer", "winter"),
    ("left", "right"),
    ("odd", "even"),
    ("circle", "square"),
    ("gold", "silver"),
    ("river", "lake"),
    ("violin", "piano"),
    ("apple", "pear"),
    ("bread", "rice"),
    ("train", "ship"),
    ("north", "south"),
    ("king", "queen"),
    ("salt", "pepper"),
    ("oak", "maple"),
    ("wolf", "fox"),
    ("monday", "friday"),
    ("iron", "copper"),
    ("wool", "cotton"),
    ("hammer", "saw"),
    ("comet", "star"),
    ("garden", "forest"),
)
_THINGS = (
    *("colour", "animal", "fruit", "city", "country", "river", "tool", "flower", "bird", "metal", "sport", "drink"),
    *("vegetable", "planet", "instrument", "language", "gemstone", "fish", "tree", "season", "month", "shape"),
    *("first name", "job", "dance", "spice", "insect", "fabric", "weather", "number between 1 and 9"),
)
BORDER = (
    *(
        f"Choose one at random: {first} or {second}. Answer with one word."
        for pair in _CHOICES
        for first, second in (pair, pair[::-1])
    ),
    *(f"Name any {thing} at random. Answer with one word." for thing in _THINGS),
)

ROUTING = ("Say which day follows Monday.",)

# An answer that goes on until it is cut, one that ends by itself, and one that says a token over and over.
CAPABILITY = (
    OPEN_ENDED[0],
    "Answer with one word: which day follows Monday?",
    "Write the word tea a hundred times, with spaces between and nothing else.",
)

_PASSAGE = (
    "The harbour office keeps a book in which every ship is entered by hand.",
    "Its first page is from the spring of the great storm, when nine boats did not come home.",
    "Each line has the hour of arrival, the cargo, the name of the master and the state of the tide.",
    "Some lines are crossed out, and nobody living can say by whom.",
    "In summer the entries crowd the margins, for then the salt traders come up the coast.",
    "In winter a week may pass without a word, and the clerk writes down the weather instead.",
    "One clerk drew small birds beside the ships that he liked, and the habit stayed with the office.",
    "When the new quay was built, the engineers read two hundred years of tides in that book.",
    "They found that the water had risen by the width of a hand, and raised the wall by twice as much.",
    "A visitor once offered to copy everything into a table, with a column for each fact.",
    "The clerk agreed, on the condition that the birds were given a column too.",
    "The table was finished after three winters and is now the more famous of the two.",
    "It has been used to date wrecks, to settle quarrels over fishing grounds, and to plan a museum.",
    "Still, whoever wants to know what a day was like goes down to the office and opens the book.",
    "There the ink has run where rain came in, and a coffee cup has left its ring on a calm day in May.",
    "The last full page ends with a question that the clerk put to whoever would read it next.",
)

# The load next to a probe's copies: from one sentence to the whole passage, for steps of mixed shapes.
_N_SENTENCES = (1, 16, 3, 10, 2, 13, 5, 8)
LOAD = tuple(
    f"Rewrite this for children, with as many details as you can think of: {' '.join(_PASSAGE[:n_sentences])}"
    for n_sentences in _N_SENTENCES
)
SHORT_LOAD = tuple(index for index, n_sentences in enumerate(_N_SENTENCES) if n_sentences <= 3)
LONG_LOAD = tuple(index for index, n_sentences in enumerate(_N_SENTENCES) if n_sentences >= 10)
