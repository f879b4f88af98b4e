"""Labels of a run's answers: given, removed, listed, and compared with the run's scorers."""

from rest_framework import serializers

from evalboard.contract.labels import AnswerToLabel, LabelledAnswer, RunLabels
from runs.api.resource import Resource, get, serve
from runs.api.serializers import Flag, Strict, Text, Whole
from runs.labels.labels import label_answers, remove_label
from runs.labels.read import labelled_answers, next_answers, run_labels


class LabelIn(Strict):
    case = Text()
    repeat = Whole(required=False, min_value=1)
    text = Text(required=False, allow_blank=True)
    is_right = Flag()


class LabelsIn(Strict):
    labels = serializers.ListField(child=LabelIn())


LABELS = Resource("label", RunLabels, run_labels, owner="user")

label_list = serve(
    LABELS.listed("labels", "Answers of a run with a label", LabelledAnswer, labelled_answers),
    LABELS.made(
        "Label answers of a run as right or wrong",
        LabelsIn,
        label_answers,
        name="label_answers",
        is_located=False,
        refuses=[404, 409],
    ),
)
next_list = serve(
    LABELS.listed("answers_to_label", "Answers of a run that the caller should label next", AnswerToLabel, next_answers)
)
label_detail = serve(LABELS.deleted("Remove your label of an answer", remove_label, refuses=[404, 409]))
agreement = serve(get("agreement", "How far labels and the scorers of a run agree", RunLabels, run_labels))
