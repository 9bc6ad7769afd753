"""The opening message of a run and what else the client may start."""

TABLE = """\
AgentRunRequest = 1 conversation_state ConversationStateStructure, 2 action ConversationAction,
    3 model_details ModelDetails, 4 mcp_tools McpTools, 5 conversation_id string?, 8 custom_system_prompt string?,
    9 requested_model RequestedModel?, 10 suggest_next_prompt bool?, 12 exclude_workspace_context bool?,
    13 harness string?, 14 selected_subagent_models RequestedModel[],
    15 selected_subagent_model_details ModelDetails[], 16 conversation_group_id string?,
    17 pre_fetched_blobs PreFetchedBlob[], 18 dev_raw_model_slug string?, 19 client_supports_inline_images bool?,
    20 subagent_model_overrides bytes(SubagentModelOverride)[], 21 can_create_cloud_subagents bool?,
    22 suppress_subagent_progress_update_tool bool?
ConversationAction = |1 user_message_action UserMessageAction, |2 resume_action ResumeAction,
    |3 cancel_action CancelAction, |4 summarize_action SummarizeAction,
    |5 shell_command_action bytes(ShellCommandAction), |6 start_plan_action bytes(StartPlanAction),
    |7 execute_plan_action bytes(ExecutePlanAction),
    |8 async_ask_question_completion_action bytes(AsyncAskQuestionCompletionAction),
    |10 cancel_subagent_action bytes(CancelSubagentAction), 11 triggering_auth_id string?,
    |12 background_task_completion_action bytes(BackgroundTaskCompletionAction),
    |13 background_shell_action bytes(BackgroundShellAction),
    |14 background_subagent_action bytes(BackgroundSubagentAction), 15 triggering_user_info bytes(TriggeringUserInfo)?
UserMessageAction = 1 user_message UserMessage, 2 request_context RequestContext,
    3 send_to_interaction_listener bool?, 4 prepend_user_messages UserMessage[],
    6 interrupted_pending_tool_call_resolutions bytes(InterruptedPendingToolCallResolutions)?,
    7 conversation_history bytes(ConversationHistory)?
ResumeAction = 2 request_context RequestContext
CancelAction = 1 reason string,
    3 interrupted_pending_tool_call_resolutions bytes(InterruptedPendingToolCallResolutions)?
SummarizeAction = (empty)
UserMessage = 1 text string, 2 message_id string, 3 selected_context SelectedContext?, 4 mode enum(AgentMode),
    5 is_simulated_msg bool?, 6 best_of_n_group_id string?, 7 try_use_best_of_n_promotion bool?, 8 rich_text string?,
    9 simulated_msg_reason enum(SimulatedMsgReason)?, 10 conversation_state_blob_id bytes,
    11 subagent_system_reminder string?, 13 triggering_user_info bytes(TriggeringUserInfo)?,
    14 execute_plan_info bytes(ExecutePlanInfo)?, 15 simulated_message_metadata bytes(SimulatedMessageMetadata)?,
    16 prompt_reference_id string?, 17 thread_id string?, 18 text_blob_id bytes?, 19 rich_text_blob_id bytes?
SelectedContext = 1 selected_images SelectedImage[], 2 invocation_context bytes(InvocationContext)?,
    3 extra_context string[], 4 files bytes(SelectedFile)[]
SelectedImage = |1 blob_id bytes, 2 uuid string, 3 path string, 4 dimension SelectedImage.Dimension,
    7 mime_type string, |8 data bytes, |9 blob_id_with_data SelectedImage.BlobIdWithData
SelectedImage.BlobIdWithData = 1 blob_id bytes, 2 data bytes
SelectedImage.Dimension = 1 width int32, 2 height int32
RequestedModel = 1 model_id string, 2 max_mode bool, 3 parameters RequestedModel.Parameter[],
    |4 api_key_credentials bytes(ApiKeyCredentials), |5 azure_credentials bytes(AzureCredentials),
    |6 bedrock_credentials bytes(BedrockCredentials), 7 built_in_model bool, 8 is_variant_string_representation bool
RequestedModel.Parameter = 1 id string, 2 value string
ModelDetails = 1 model_id string, 2 thinking_details ThinkingDetails?, 3 display_model_id string,
    4 display_name string, 5 display_name_short string, 6 aliases string[], 7 max_mode bool?,
    |8 api_key_credentials bytes(ApiKeyCredentials), |9 azure_credentials bytes(AzureCredentials),
    |10 bedrock_credentials bytes(BedrockCredentials)
ThinkingDetails = (empty)
McpTools = 1 mcp_tools McpToolDefinition[]
McpToolDefinition = 1 name string, 2 description string, 3 input_schema Value, 4 provider_identifier string,
    5 tool_name string
PreFetchedBlob = 1 id bytes, 2 value bytes
"""
