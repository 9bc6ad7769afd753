"""Updates of the answer as the service shows them; none of them asks the client for anything."""

TABLE = """\
InteractionUpdate = |1 text_delta TextDeltaUpdate, |2 tool_call_started ToolCallStartedUpdate,
    |3 tool_call_completed ToolCallCompletedUpdate, |4 thinking_delta ThinkingDeltaUpdate,
    |5 thinking_completed ThinkingCompletedUpdate, |6 user_message_appended UserMessageAppendedUpdate,
    |7 partial_tool_call PartialToolCallUpdate, |8 token_delta TokenDeltaUpdate, |9 summary SummaryUpdate,
    |10 summary_started SummaryStartedUpdate, |11 summary_completed SummaryCompletedUpdate,
    |12 shell_output_delta ShellOutputDeltaUpdate, |13 heartbeat HeartbeatUpdate, |14 turn_ended TurnEndedUpdate,
    |15 tool_call_delta ToolCallDeltaUpdate, |16 step_started StepStartedUpdate,
    |17 step_completed StepCompletedUpdate, |18 prompt_suggestion PromptSuggestionUpdate,
    |19 post_request_prompt bytes(PostRequestPromptUpdate), |20 active_branch_change bytes(ActiveBranchChange),
    |21 feedback_request bytes(FeedbackRequestUpdate)
TextDeltaUpdate = 1 text string
ThinkingDeltaUpdate = 1 text string, 2 thinking_style enum(ThinkingStyle)?
ThinkingCompletedUpdate = 1 thinking_duration_ms int32
ToolCallStartedUpdate = 1 call_id string, 2 tool_call bytes(ToolCall), 3 model_call_id string
ToolCallCompletedUpdate = 1 call_id string, 2 tool_call bytes(ToolCall), 3 model_call_id string
PartialToolCallUpdate = 1 call_id string, 2 tool_call bytes(ToolCall), 3 args_text_delta string,
    4 model_call_id string
ToolCallDeltaUpdate = 1 call_id string, 2 tool_call_delta ToolCallDelta, 3 model_call_id string
ToolCallDelta = |1 shell_tool_call_delta bytes(ShellToolCallDelta), |2 task_tool_call_delta TaskToolCallDelta,
    |3 edit_tool_call_delta bytes(EditToolCallDelta)
TaskToolCallDelta = 1 interaction_update InteractionUpdate
TokenDeltaUpdate = 1 tokens int32
SummaryUpdate = 1 summary string
SummaryStartedUpdate = (empty)
SummaryCompletedUpdate = 1 hook_message string?
UserMessageAppendedUpdate = 1 user_message UserMessage
ShellOutputDeltaUpdate = |1 stdout ShellStreamStdout, |2 stderr ShellStreamStderr, |3 exit ShellStreamExit,
    |4 start ShellStreamStart
HeartbeatUpdate = (empty)
TurnEndedUpdate = 1 input_tokens int64?, 2 output_tokens int64?, 3 cache_read_tokens int64?,
    4 cache_write_tokens int64?
StepStartedUpdate = 1 step_id uint64
StepCompletedUpdate = 1 step_id uint64, 2 step_duration_ms int64
PromptSuggestionUpdate = 1 suggestion string
"""
