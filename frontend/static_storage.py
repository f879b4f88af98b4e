"""Static files under names that have their content's digest, so that a browser may keep them for ever."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # WhiteNoise has no types
    """What a script imports from its neighbours is renamed with them."""

    support_js_module_import_aggregation = True
    # No script's map is served, so what names one keeps its words.
    patterns = tuple(each for each in CompressedManifestStaticFilesStorage.patterns if each[0] != "*.js")
