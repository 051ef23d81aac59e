//! The server: answers the protocol's requests with tools and resources.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam,
    ContentBlock, ErrorCode, ErrorData, Implementation, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, RequestId, ResourceUpdatedNotificationParam,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool,
    ToolAnnotations, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{Peer, RoleServer};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::call::{ProgressReport, Reply, ServerState, ToolCall};
use super::offered::{OfferedTool, ToolUser, offered};
use super::resources::{self, ResourceName};
use super::tools::{ToolDefinition, ToolEffect};
use super::wording::Wording;
use crate::fail::{ErrorMessage, Failure};
use crate::out::Out;
use crate::setup::Setup;
use model::wire::Object;
use ops::Kind;

/// The description of the whole server, which clients show to a model.
const INSTRUCTIONS: &str = "Leads teams of agents that run side by side, each in a terminal of its own. A lead creates a team \
    (TeamCreate), starts members (SpawnTeammate), shares work as tasks (TaskCreate) and messages (SendMessage), reads their mail \
    (ReadInbox), decides on their requests (Requests, Answer), and ends them (Shutdown, TeamDelete). A member reads its mail, \
    claims tasks, completes them, and reports to `team-lead`.";

/// The argument that names the team, which every tool takes and none lists.
const TEAM: &str = "team_name";

/// Maximum number of subscriptions of a client.
const MAX_SUBSCRIPTIONS: usize = 64;

pub(super) struct TeamServer {
    pub(super) state: Arc<ServerState>,
    /// The subscribed resources, each with the token that ends its watch.
    watched: Mutex<HashMap<String, CancellationToken>>,
}

impl TeamServer {
    pub(super) fn new(state: Arc<ServerState>) -> TeamServer {
        TeamServer { state, watched: Mutex::new(HashMap::new()) }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up the caller, as each command does: the mode of the lead may change.
    fn user(&self) -> Result<ToolUser, Failure> {
        let setup = self.state.setup(Out::captured().0)?;
        let is_lead = setup.ctx.speaker.is_lead();
        let team = setup.visible_team().and_then(|team| team.team().ok());
        let mode = team.and_then(|team| team.member(&setup.ctx.speaker)?.mode);
        Ok(ToolUser { is_lead, mode, read_only: self.state.read_only })
    }

    /// Runs a tool on a thread of its own.
    async fn run(
        &self,
        tool: OfferedTool,
        mut arguments: Object,
        context: &RequestContext<RoleServer>,
    ) -> Result<Reply, Failure> {
        let progress = context.meta.get_progress_token().map(|token| ProgressReport {
            runtime: Handle::current(),
            peer: context.peer.clone(),
            token,
        });
        // Claude Code's tools name the team in each call.
        let is_own = || tool.schema().properties.contains_key(TEAM);
        let names_team = arguments.contains_key(TEAM) && !is_own();
        let team = if names_team { arguments.shift_remove(TEAM) } else { None };
        let team = team.as_ref().and_then(Value::as_str).map(str::to_owned);
        let (server, cancel) = (Arc::clone(&self.state), context.ct.clone());
        let call = ToolCall { server, team, cancel, progress };
        self.on_thread(move || tool.run(&call, arguments)).await
    }

    async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let closed = |_| Failure::new(Kind::Interrupted, "the server ends", None);
        let permit = Arc::clone(&self.state.calls).acquire_owned().await.map_err(closed)?;
        let (sender, result) = oneshot::channel();
        let work = move || {
            let done = catch_unwind(AssertUnwindSafe(work));
            drop(permit);
            drop(sender.send(done));
        };
        thread::Builder::new().name("tool".to_owned()).spawn(work)?;
        match result.await {
            Ok(Ok(done)) => done,
            // The panic is reported on stderr; the server goes on with other calls.
            Ok(Err(_)) | Err(_) => Err(Failure::new(Kind::Internal, "a fault in phalanx", None)),
        }
    }

    /// Returns a call that names no team, for a resource.
    fn call(&self, cancel: &CancellationToken) -> ToolCall {
        let (server, cancel) = (Arc::clone(&self.state), cancel.clone());
        ToolCall { server, team: None, cancel, progress: None }
    }

    fn wording(&self) -> Wording {
        Wording::new(self.state.definition)
    }

    /// Formats a failure for a model.
    fn failed(&self, failure: Failure, wording: Wording) -> Reply {
        let setup = self.state.setup(Out::captured().0).ok();
        let wording = wording.below(setup.map(|setup: Setup| setup.ctx.store.root().to_owned()));
        let error = match failure {
            Failure::Message(error) => error,
            Failure::StreamEnded | Failure::OutputClosed => ErrorMessage {
                kind: Kind::Interrupted,
                message: "the call was interrupted".to_owned(),
                hint: None,
            },
        };
        // The environment decides who the caller is.
        let hint = error.hint.filter(|hint| !hint.contains("`--as"));
        let hint = hint.map(|hint| wording.for_model(&hint));
        let document = json!({
            "success": false, "kind": error.kind.word(), "message": wording.for_model(&error.message),
            "hint": hint,
        });
        Reply { is_error: true, ..Reply::of(document) }
    }
}

/// Returns what a client gets: the structured result, and the same as text.
fn result(reply: Reply) -> CallToolResult {
    let mut document = reply.document;
    if !reply.notes.is_empty() {
        document.insert("notes".to_owned(), json!(reply.notes));
    }
    document.retain(|_, value| !value.is_null());
    let text = Value::Object(document.clone()).to_string();
    let content = vec![ContentBlock::text(text)];
    let mut result = if reply.is_error {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    result.structured_content = Some(Value::Object(document));
    result
}

/// Translates what a result says about the next step.
fn in_words_of_tools(mut reply: Reply, wording: &Wording) -> Reply {
    if let Some(Value::String(advice)) = reply.document.get_mut("advice") {
        *advice = wording.for_model(advice);
    }
    reply.notes.iter_mut().for_each(|note| *note = wording.for_model(note));
    reply
}

fn described(tool: &OfferedTool) -> Tool {
    let mut schema = tool.schema();
    for property in schema.properties.values_mut() {
        if let Some(Value::String(meaning)) = property.get_mut("description") {
            *meaning = Wording::default().for_model(meaning);
        }
    }
    let schema = Arc::new(schema.to_object());
    // Only what differs from the protocol's defaults.
    let hints = ToolAnnotations::new().open_world(false);
    let hints = match (tool.has_only(ToolEffect::Reads), tool.has_only(ToolEffect::Ends)) {
        (true, _) => hints.read_only(true),
        (_, true) => hints,
        (false, false) => hints.destructive(false),
    };
    let ToolDefinition { name, description, .. } = *tool.definition;
    // The source indents its lines.
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    Tool::new(name, description, schema).with_annotations(hints)
}

fn unknown_tool(name: &str) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_PARAMS, format!("there is no tool {name:?}"), None)
}

fn refused(failure: &Failure) -> ErrorData {
    let text = match failure {
        Failure::Message(error) => error.message.clone(),
        Failure::StreamEnded | Failure::OutputClosed => "interrupted".to_owned(),
    };
    ErrorData::new(ErrorCode::INTERNAL_ERROR, text, None)
}

fn resource_called(uri: &str) -> Result<ResourceName, ErrorData> {
    let unknown = || ErrorData::resource_not_found(format!("there is no resource {uri:?}"), None);
    ResourceName::parse(uri).ok_or_else(unknown)
}

impl ServerHandler for TeamServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe();
        ServerConfig::new(capabilities.build())
            .with_server_info(Implementation::new("phalanx", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let user = self.user().map_err(|failure| refused(&failure))?;
        Ok(ListToolsResult::with_all_items(offered(user).map(|tool| described(&tool)).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let user = self.user().map_err(|failure| refused(&failure))?;
        let tool = offered(user).find(|tool| tool.definition.name == request.name);
        let tool = tool.ok_or_else(|| unknown_tool(&request.name))?;
        let arguments = request.arguments.unwrap_or_default();
        let wording = self.wording().of_call(tool.definition, &arguments);
        let mut reply = match self.run(tool, arguments, &context).await {
            Ok(reply) => in_words_of_tools(reply, &wording),
            Err(failure) => self.failed(failure, wording),
        };
        if let Some(messages) = reply.messages.take() {
            self.state.deliveries.register(&context.id, &context.ct, messages);
        }
        Ok(result(reply).into())
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        _context: NotificationContext<RoleServer>,
    ) {
        let request: Option<RequestId> = notification.request_id;
        if let Some(request) = request {
            self.state.deliveries.cancel(&request);
        }
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let name = resource_called(&request.uri)?;
        let call = self.call(&context.ct);
        let text = self.on_thread(move || resources::read(&call, &name)).await;
        let text = text.map_err(|failure| {
            let reply = self.failed(failure, self.wording());
            let message = reply.document["message"].as_str().unwrap_or_default();
            ErrorData::internal_error(message.to_owned(), None)
        })?;
        let contents = resources::contents(&request.uri, text);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let name = resource_called(&request.uri)?;
        let end = self.state.ending.child_token();
        {
            let mut watched = self.watched();
            if watched.len() >= MAX_SUBSCRIPTIONS {
                let problem = format!("more than {MAX_SUBSCRIPTIONS} subscriptions");
                return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, problem, None));
            }
            if let Some(before) = watched.insert(request.uri.clone(), end.clone()) {
                before.cancel();
            }
        }
        let (peer, runtime) = (context.peer.clone(), Handle::current());
        let call = self.call(&end);
        let notify = move |uri: &str| notify(&runtime, &peer, uri);
        let (watching, begun) = oneshot::channel();
        let watching = || {
            let _ = watching.send(());
        };
        let watch = move || resources::watch(&call, &name, &request.uri, watching, &notify);
        thread::Builder::new()
            .name("resource".to_owned())
            .spawn(watch)
            .map_err(|e| ErrorData::new(ErrorCode::INTERNAL_ERROR, e.to_string(), None))?;
        // The answer promises that later changes are reported. Without a team nothing begins.
        let _ = begun.await;
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if let Some(end) = self.watched().remove(&request.uri) {
            end.cancel();
        }
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let known = requested.resource_subscriptions.iter().flatten();
        let known = known.filter(|uri| ResourceName::parse(uri).is_some()).take(MAX_SUBSCRIPTIONS);
        Some(SubscriptionFilter::builder().resource_subscriptions(known).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let end = self.state.ending.child_token();
        let _ended = end.clone().drop_guard();
        for uri in context.accepted().resource_subscriptions.clone().into_iter().flatten() {
            let Some(name) = ResourceName::parse(&uri) else { continue };
            let (sink, runtime) = (context.sink().clone(), Handle::current());
            let call = self.call(&end);
            // Waits until it is written, so that changes meanwhile become one.
            let notify = move |uri: &str| drop(runtime.block_on(sink.notify_resource_updated(uri)));
            // The client was answered before, so it may have missed a change.
            let begin = {
                let (uri, notify) = (uri.clone(), notify.clone());
                move || notify(&uri)
            };
            let watch = move || resources::watch(&call, &name, &uri, begin, &notify);
            // Without a thread this resource is not reported.
            let _ = thread::Builder::new().name("resource".to_owned()).spawn(watch);
        }
        tokio::select! {
            () = context.cancelled() => {}
            () = self.state.ending.cancelled() => {}
        }
        Ok(())
    }
}

/// Notifies the client, and waits until that is written, so that changes meanwhile become one.
fn notify(runtime: &Handle, peer: &Peer<RoleServer>, uri: &str) {
    let changed = ResourceUpdatedNotificationParam::new(uri);
    drop(runtime.block_on(peer.notify_resource_updated(changed)));
}
