"""Style elements that Plotly would add by script, which a strict `style-src` refuses.

Each is skipped where an element of its id is there already, so the page makes them, with the nonce:
the global one is filled by script (allowed once it carries the nonce), that of the map library stays
empty, since no page draws a map. The second id is a digest of the release, hence read from the script.
"""

import re
from functools import cache
from importlib.resources import files

GLOBAL = "plotly.js-style-global"
GUARDED = re.compile(r'if\(!document\.getElementById\("([\w-]+)"\)\)\{var \w+=document\.createElement\("style"\)')


@cache
def style_ids() -> tuple[str, ...]:
    script = (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    return (GLOBAL, *GUARDED.findall(script))
