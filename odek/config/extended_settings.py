"""The settings of Extended Memory, as ``settings`` has the rest."""

from typing import Annotated, Literal

from odek.config.embedding_settings import EmbeddingSettings
from odek.config.section import Section, address, credential, setting

__all__ = ["ExtendedSettings", "MemoryModelSettings"]


class MemoryModelSettings(Section, frozen=True, kw_only=True):
    """The model that extracts, reranks and infers; without it the main model does."""

    base_url: Annotated[
        str,
        address("Root of its chat-completions endpoint; empty: the main one.", "http://localhost:11434/v1"),
    ] = ""
    api_key: Annotated[str, credential("Key of that endpoint.")] = ""
    model: Annotated[str, setting("Model name; empty: the main model.")] = ""
    max_tokens: Annotated[int, setting("Longest answer; 0: the endpoint's own.", ge=0, le=1_000_000)] = 0
    temperature: Annotated[float, setting("Randomness.", ge=0.0, le=2.0)] = 0.0
    timeout_seconds: Annotated[float, setting("Longest time of one request.", gt=0, le=600.0)] = 30.0


class ExtendedSettings(Section, frozen=True, kw_only=True):
    """Atoms: small typed statements of the person, recalled by what they are about."""

    enabled: Annotated[bool, setting("Extract and recall atoms.")] = False
    max_size_mb: Annotated[
        int, setting("Size of memory/extended in megabytes; the least retained atoms go.", ge=1, le=100_000)
    ] = 100
    atom_max_chars: Annotated[int, setting("Longest text of an atom.", ge=20, le=2000)] = 300
    memory_budget_chars: Annotated[int, setting("Room for the atoms of a turn.", ge=0, le=100_000)] = 2000
    semantic_search_top_k: Annotated[int, setting("Atoms a turn is given at most.", ge=0, le=100)] = 10
    semantic_search_overfetch: Annotated[
        int, setting("Candidates looked at for each of these.", ge=1, le=20)
    ] = 4
    semantic_search_min_score: Annotated[
        float,
        setting("Least likeness; 0: the default, 0.5, whatever makes the vectors.", ge=0.0, le=1.0),
    ] = 0.0
    semantic_search_rerank: Annotated[bool, setting("Let a configured memory model order candidates.")] = True
    predictive_intents: Annotated[
        int, setting("Follow-ups that a configured memory model predicts.", ge=0, le=10)
    ] = 3
    decay_half_life_days: Annotated[
        float, setting("Days in which an atom's retention halves.", gt=0, le=36_500)
    ] = 30.0
    quarantine_ttl_days: Annotated[
        int, setting("Days after which quarantined atoms go first when room is needed.", ge=0, le=36_500)
    ] = 7
    eviction_policy: Annotated[Literal["retention_decay"], setting("How room is made.")] = "retention_decay"
    auto_extract_per_turn: Annotated[bool, setting("Extract atoms from each message of the person.")] = True
    daily_token_budget: Annotated[
        int, setting("Tokens a day for all calls of this layer; 0: none.", ge=0, le=1_000_000_000)
    ] = 100_000
    daily_call_budget: Annotated[
        int, setting("Model calls a day of this layer; 0: none.", ge=0, le=1_000_000)
    ] = 500
    infer_user_state: Annotated[bool, setting("Infer how the person works and what is in focus.")] = True
    user_state_turn_interval: Annotated[int, setting("Turns between inferences.", ge=1, le=1000)] = 5
    user_state_max_pending: Annotated[int, setting("Inferences that may wait for review.", ge=0, le=1000)] = (
        20
    )
    user_state_pending_max_age_days: Annotated[
        int, setting("Days until an unconfirmed inference expires; 0: never.", ge=0, le=36_500)
    ] = 14
    associations_enabled: Annotated[bool, setting("Link atoms of one time, task or subject.")] = True
    association_semantic_top_k: Annotated[int, setting("Links to the most alike.", ge=0, le=50)] = 3
    semantic_dedup_threshold: Annotated[
        float, setting("Cosine above which two atoms are one; 0: equal texts alone.", ge=0.0, le=1.0)
    ] = 0.92
    consolidate_similarity_threshold: Annotated[
        float, setting("Cosine above which atoms are consolidated.", ge=0.0, le=1.0)
    ] = 0.9
    proactive_return_after_break: Annotated[bool, setting("On resume, say where the person left off.")] = True
    style_mirroring_enabled: Annotated[bool, setting("Answer in the person's style.")] = True
    anaphora_resolution_enabled: Annotated[
        bool, setting("Resolve the first pronoun of a message by recent atoms.")
    ] = True
    follow_up_anticipation_enabled: Annotated[bool, setting("Recall for predicted follow-ups too.")] = True
    follow_up_suggestions_enabled: Annotated[bool, setting("Offer likely follow-ups after an answer.")] = True
    follow_up_suggestion_min_confidence: Annotated[
        float, setting("Confidence from which a follow-up is offered.", ge=0.0, le=1.0)
    ] = 0.6
    proactive_nudges_enabled: Annotated[
        bool, setting("Remind of open questions, stale goals, blockers and drift.")
    ] = False
    nudge_max_per_day: Annotated[int, setting("Nudges a day.", ge=0, le=100)] = 1
    nudge_cooldown_hours: Annotated[float, setting("Hours between two nudges of a kind.", ge=0, le=8760)] = (
        24.0
    )
    nudge_stale_goal_days: Annotated[
        float, setting("Days without activity until a goal is stale.", ge=0, le=36_500)
    ] = 7.0
    nudge_open_question_min_age_hours: Annotated[
        float, setting("Hours until an open question is worth a nudge.", ge=0, le=876_000)
    ] = 24.0
    llm: MemoryModelSettings = MemoryModelSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
