"""The messages of a run except for its tools, and the list of models. `schema.py` explains the rows."""

TABLES = {
    # What carries the messages of a run: the opening of RunSSE and one append
    "transport": """\
BidiRequestId = 1 request_id string
BidiAppendRequest = 1 data string, 2 request_id BidiRequestId, 3 append_seqno int64, 4 data_binary bytes
BidiAppendResponse = (empty)
""",
    # What either side sends: the outermost messages
    "top": """\
AgentClientMessage = |1 run_request AgentRunRequest, |2 exec_client_message ExecClientMessage,
    |3 kv_client_message KvClientMessage, |4 conversation_action ConversationAction,
    |5 exec_client_control_message ExecClientControlMessage, |6 interaction_response InteractionResponse,
    |7 client_heartbeat ClientHeartbeat, |8 prewarm_request bytes(PrewarmRequest)
AgentServerMessage = |1 interaction_update InteractionUpdate, |2 exec_server_message ExecServerMessage,
    |3 conversation_checkpoint_update ConversationStateStructure, |4 kv_server_message KvServerMessage,
    |5 exec_server_control_message ExecServerControlMessage, |7 interaction_query InteractionQuery
ClientHeartbeat = (empty)
""",
    # The opening message of a run and what else the client may start
    "run_request": """\
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
""",
    # The request context: what the client says of the place it works in
    "context": """\
RequestContextArgs = 2 notes_session_id string?, 3 workspace_id string?, 4 read_only_pinned_tree_sha string?,
    5 read_only_plugin_cache_root string?
RequestContextResult = |1 success RequestContextSuccess, |2 error RequestContextError,
    |3 rejected RequestContextRejected
RequestContextSuccess = 1 request_context RequestContext
RequestContextError = 1 error string
RequestContextRejected = 1 reason string
RequestContext = 2 rules CursorRule[], 4 env RequestContextEnv, 6 repository_info bytes(RepositoryIndexingInfo)[],
    7 tools McpToolDefinition[], 11 git_repos GitRepoInfo[], 13 project_layouts LsDirectoryTreeNode[],
    14 mcp_instructions McpInstructions[], 16 cloud_rule string?, 17 web_search_enabled bool?,
    20 file_contents map<string,string>, 21 user_intent_summary string?, 24 web_fetch_enabled bool?,
    32 supports_mcp_auth bool?, 33 git_repo_info_complete bool?, 35 read_lints_enabled bool?,
    36 mcp_info_complete bool?, 39 rules_info_complete bool?, 40 env_info_complete bool?,
    41 repository_info_complete bool?, 42 custom_subagents_info_complete bool?, 43 agent_skills_info_complete bool?,
    44 mcp_file_system_info_complete bool?, 45 git_status_info_complete bool?
RequestContextEnv = 1 os_version string, 2 workspace_paths string[], 3 shell string, 5 sandbox_enabled bool,
    7 terminals_folder string, 8 agent_shared_notes_folder string, 9 agent_conversation_notes_folder string,
    10 time_zone string, 11 project_folder string, 12 agent_transcripts_folder string, 13 artifacts_folder string?,
    14 sandbox_supported bool?, 16 sandbox_network_has_defaults bool?, 17 sandbox_network_explicit_allowlist string[],
    18 secret_redaction_enabled bool?, 19 computer_use_supported bool?, 20 is_working_dir_home_dir bool?,
    21 process_working_directory string?, 22 smart_mode_classifier_auto_mode_enabled bool?,
    23 dev_force_next_smart_mode_classifier_block_token string?
CursorRule = 1 full_path string, 2 content string, 3 type bytes(CursorRuleType), 4 source enum(CursorRuleSource),
    5 git_remote_origin string?
McpInstructions = 1 server_name string, 2 instructions string, 3 server_identifier string
GitRepoInfo = 1 path string, 2 status string, 3 branch_name string, 4 remote_url string?,
    5 previous_branch_is_ancestor bool?
""",
    # Updates of the answer as the service shows them; none of them asks the client for anything
    "updates": """\
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
""",
    # Blobs that the client keeps for the service, and what the service stores in them
    "blobs": """\
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
""",
    # Questions of the service to the user, and the answers
    "queries": """\
InteractionQuery = 1 id uint32, |2 web_search_request_query WebSearchRequestQuery,
    |3 ask_question_interaction_query AskQuestionInteractionQuery,
    |4 switch_mode_request_query SwitchModeRequestQuery, |5 exa_search_request_query bytes(ExaSearchRequestQuery),
    |6 exa_fetch_request_query bytes(ExaFetchRequestQuery), |7 create_plan_request_query CreatePlanRequestQuery,
    |8 setup_vm_environment_args bytes(SetupVmEnvironmentArgs), |9 web_fetch_request_query WebFetchRequestQuery,
    |10 pr_management_request_query bytes(PrManagementRequestQuery), |11 mcp_auth_request_query McpAuthRequestQuery,
    |12 generate_image_request_query GenerateImageRequestQuery, |13 replace_env_args bytes(ReplaceEnvArgs)
InteractionResponse = 1 id uint32, |2 web_search_request_response WebSearchRequestResponse,
    |3 ask_question_interaction_response AskQuestionInteractionResponse,
    |4 switch_mode_request_response SwitchModeRequestResponse,
    |5 exa_search_request_response ExaSearchRequestResponse, |6 exa_fetch_request_response ExaFetchRequestResponse,
    |7 create_plan_request_response CreatePlanRequestResponse,
    |8 setup_vm_environment_result SetupVmEnvironmentResult, |9 web_fetch_request_response WebFetchRequestResponse,
    |10 pr_management_result bytes(PrManagementResult), |11 mcp_auth_request_response McpAuthRequestResponse,
    |12 generate_image_request_response GenerateImageRequestResponse, |13 replace_env_result bytes(ReplaceEnvResult)
WebSearchRequestQuery = 1 args WebSearchArgs
WebSearchArgs = 1 search_term string, 2 tool_call_id string
WebSearchRequestResponse = |1 approved WebSearchRequestResponse.Approved,
    |2 rejected WebSearchRequestResponse.Rejected
WebSearchRequestResponse.Approved = (empty)
WebSearchRequestResponse.Rejected = 1 reason string
WebFetchRequestQuery = 1 args WebFetchArgs, 2 skip_approval bool
WebFetchArgs = 1 url string, 2 tool_call_id string
WebFetchRequestResponse = |1 approved WebFetchRequestResponse.Approved, |2 rejected WebFetchRequestResponse.Rejected
WebFetchRequestResponse.Approved = (empty)
WebFetchRequestResponse.Rejected = 1 reason string
AskQuestionInteractionQuery = 1 args AskQuestionArgs, 2 tool_call_id string
AskQuestionArgs = 1 title string, 2 questions AskQuestionArgs.Question[], 5 run_async bool,
    6 async_original_tool_call_id string
AskQuestionArgs.Question = 1 id string, 2 prompt string, 3 options AskQuestionArgs.Option[], 4 allow_multiple bool
AskQuestionArgs.Option = 1 id string, 2 label string
AskQuestionInteractionResponse = 1 result AskQuestionResult
AskQuestionResult = |1 success bytes(AskQuestionSuccess), |2 error AskQuestionError, |3 rejected AskQuestionRejected
AskQuestionError = 1 error_message string
AskQuestionRejected = 1 reason string
SwitchModeRequestQuery = 1 args SwitchModeArgs
SwitchModeArgs = 1 target_mode_id string, 2 explanation string?, 3 tool_call_id string
SwitchModeRequestResponse = |1 approved SwitchModeRequestResponse.Approved,
    |2 rejected SwitchModeRequestResponse.Rejected
SwitchModeRequestResponse.Approved = (empty)
SwitchModeRequestResponse.Rejected = 1 reason string
CreatePlanRequestQuery = 1 args CreatePlanArgs, 2 tool_call_id string
CreatePlanArgs = 1 plan string, 3 overview string, 4 name string, 5 is_project bool
CreatePlanRequestResponse = 1 result CreatePlanResult
CreatePlanResult = |1 success CreatePlanSuccess, |2 error CreatePlanError, 3 plan_uri string
CreatePlanError = 1 error string
McpAuthRequestQuery = 1 args McpAuthArgs
McpAuthArgs = 1 server_identifier string, 2 tool_call_id string
McpAuthRequestResponse = |1 approved McpAuthRequestResponse.Approved, |2 rejected McpAuthRequestResponse.Rejected
McpAuthRequestResponse.Approved = (empty)
McpAuthRequestResponse.Rejected = 1 reason string
GenerateImageRequestQuery = 2 tool_call_id string
GenerateImageRequestResponse = |1 approved GenerateImageRequestResponse.Approved,
    |2 rejected GenerateImageRequestResponse.Rejected
GenerateImageRequestResponse.Approved = 1 description string
GenerateImageRequestResponse.Rejected = 1 reason string
CreatePlanSuccess = (empty)
SetupVmEnvironmentResult = |1 success bytes(SetupVmEnvironmentSuccess)
ExaSearchRequestResponse = |1 approved bytes(ExaSearchRequestResponse.Approved),
    |2 rejected bytes(ExaSearchRequestResponse.Rejected)
ExaFetchRequestResponse = |1 approved bytes(ExaFetchRequestResponse.Approved),
    |2 rejected bytes(ExaFetchRequestResponse.Rejected)
""",
    # The list of models
    "models": """\
GetUsableModelsRequest = 1 custom_model_ids string[]
GetUsableModelsResponse = 1 models ModelDetails[]
""",
    # JSON inside a message: `google.protobuf.Value`, `Struct` and `ListValue`
    "json_values": """\
Value = |1 null_value enum(NullValue), |2 number_value double, |3 string_value string, |4 bool_value bool,
    |5 struct_value Struct, |6 list_value ListValue
Struct = 1 fields map<string,Value>
ListValue = 1 values Value[]
""",
}
