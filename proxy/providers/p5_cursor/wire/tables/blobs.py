"""Blobs that the client keeps for the service, and what the service stores in them."""

TABLE = """\
KvServerMessage = 1 id uint32, |2 get_blob_args GetBlobArgs, |3 set_blob_args SetBlobArgs, 4 span_context SpanContext?
KvClientMessage = 1 id uint32, |2 get_blob_result GetBlobResult, |3 set_blob_result SetBlobResult
GetBlobArgs = 1 blob_id bytes
GetBlobResult = 1 blob_data bytes?
SetBlobArgs = 1 blob_id bytes, 2 blob_data bytes
SetBlobResult = 1 error Error?
Error = 1 message string
ConversationStateStructure = 1 root_prompt_messages_json bytes[], 3 todos bytes[], 4 pending_tool_calls string[],
    5 token_details ConversationTokenDetails, 6 summary bytes?, 7 plan bytes?, 8 turns bytes[],
    9 previous_workspace_uris string[], 10 mode enum(AgentMode)?, 11 summary_archive bytes?,
    13 summary_archives bytes[], 17 self_summary_count uint32, 18 read_paths string[]
ConversationTokenDetails = 1 used_tokens uint32, 2 max_tokens uint32
ConversationTurnStructure = |1 agent_conversation_turn AgentConversationTurnStructure,
    |2 shell_conversation_turn bytes(ShellConversationTurnStructure)
AgentConversationTurnStructure = 1 user_message bytes, 2 steps bytes[], 3 request_id string?,
    4 encrypted_model string?
ConversationStep = |1 assistant_message AssistantMessage, |2 tool_call bytes(ToolCall),
    |3 thinking_message ThinkingMessage
AssistantMessage = 1 text string
ThinkingMessage = 1 text string, 2 duration_ms uint32
"""
