"""The settings of the memory, as ``settings`` has the rest."""

from typing import Annotated, Literal

from odek.config.embedding_settings import EmbeddingSettings
from odek.config.extended_settings import ExtendedSettings
from odek.config.section import Section, setting

__all__ = ["MemorySettings"]


class MemorySettings(Section, frozen=True, kw_only=True):
    """What is remembered across sessions."""

    enabled: Annotated[bool, setting("Offer the memory tool and show facts to the model.")] = True
    facts_limit_user: Annotated[
        int, setting("Size of user.md in bytes, separators included.", ge=0, le=1_000_000)
    ] = 4000
    facts_limit_env: Annotated[
        int, setting("Size of env.md in bytes, separators included.", ge=0, le=1_000_000)
    ] = 8000
    buffer_enabled: Annotated[bool, setting("Keep a line for each of the last turns of a session.")] = True
    buffer_lines: Annotated[int, setting("Lines of that buffer.", ge=1, le=1000)] = 20
    merge_on_write: Annotated[bool, setting("Fold a new fact into one that says the same.")] = True
    merge_threshold: Annotated[
        float, setting("Cosine above which two facts are merged unasked.", ge=0.0, le=1.0)
    ] = 0.7
    add_threshold: Annotated[
        float,
        setting("Cosine below which a fact is added unasked; not above merge_threshold.", ge=0.0, le=1.0),
    ] = 0.3
    consolidate_at_cap_pct: Annotated[
        int, setting("Fill at which a fact file is consolidated in the background; 0: never.", ge=0, le=100)
    ] = 80
    consolidate_on_end: Annotated[
        bool, setting("Merge facts extracted at the end of a session by the model.")
    ] = True
    llm_consolidate: Annotated[bool, setting("Let the model merge related facts.")] = True
    llm_search: Annotated[bool, setting("Let the model order the results of an explicit search.")] = True
    ranker: Annotated[
        Literal["auto", "rp"],
        setting(
            "How episodes are found. auto: by the index of their words, their sessions' words and, where "
            "embedding is configured, vectors. rp: by the cosine of vectors alone."
        ),
    ] = "auto"
    llm_extract: Annotated[bool, setting("Let the model extract at the end of a session.")] = True
    extract_on_end: Annotated[bool, setting("Summarise a session when it ends.")] = True
    extract_facts: Annotated[
        bool, setting("Also extract facts then. A wrong fact persists; off by default.")
    ] = False
    min_turns_for_extraction: Annotated[
        int, setting("Shorter sessions are not summarised.", ge=1, le=1000)
    ] = 3
    episode_dedup_threshold: Annotated[
        float, setting("Cosine above which an episode is a near-duplicate; 0: never.", ge=0.0, le=1.0)
    ] = 0.92
    max_episodes: Annotated[
        int, setting("Episodes kept; the oldest go. 0: no limit.", ge=0, le=1_000_000)
    ] = 500
    episode_ttl_days: Annotated[int, setting("Days until an episode expires; 0: never.", ge=0, le=36_500)] = 0
    auto_approve_episodes: Annotated[
        bool, setting("Recall episodes of untrusted sessions without review. Keep it off.")
    ] = False
    embedding: EmbeddingSettings = EmbeddingSettings()
    extended: ExtendedSettings = ExtendedSettings()
