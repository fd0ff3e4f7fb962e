"""The settings of what makes vectors of texts, as ``settings`` has the rest."""

from typing import Annotated, Literal

from odek.config.section import Section, address, credential, setting

__all__ = ["EmbeddingSettings"]


class EmbeddingSettings(Section, frozen=True, kw_only=True):
    """Where texts become vectors that say how alike they are."""

    provider: Annotated[
        Literal["rp", "http", "static"],
        setting(
            "rp: computed here from the words; http: an OpenAI-compatible /embeddings endpoint; "
            "static: word vectors that pip install 'odek[semantic]' brings."
        ),
    ] = "rp"
    base_url: Annotated[
        str,
        address(
            "Root of the endpoint, such as http://localhost:11434/v1. Summaries and facts are sent there.",
            "http://localhost:11434/v1",
        ),
    ] = ""
    model: Annotated[str, setting("Embedding model, such as nomic-embed-text.")] = ""
    api_key: Annotated[str, credential("Key of the endpoint.")] = ""
    dims: Annotated[
        int, setting("Expected size of a vector; 0 takes the first answer's.", ge=0, le=65_536)
    ] = 0
    timeout_seconds: Annotated[float, setting("Longest time of one request.", gt=0, le=600.0)] = 10.0
