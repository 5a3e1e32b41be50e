"""The items of compaction: what stands for older items, and what asks for that. Source: API reference, "input"."""

COMPACTION = "compaction"
TRIGGER = "compaction_trigger"
