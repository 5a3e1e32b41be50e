"""Compaction: a summary, made by the model, in the place of older items.

A checkpoint is an item of type `compaction` whose content only this deployment can read (`seal`). What the model is
told of a conversation begins with the latest one (`window`); it is made by a call of what is below (`summary`), where a
window has outgrown its threshold or the client asks (`compact`), or by an endpoint of its own (`endpoint`).
"""
