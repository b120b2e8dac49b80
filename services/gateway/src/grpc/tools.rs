//! `ToolService`.

use std::{collections::HashMap, sync::Arc};

use gatehouse_platform::auth::Caller;
use gatehouse_proto::gateway::v1::{self, tool_service_server::ToolService};
use tonic::{Request, Response, Status};

use super::{answer, methods};
use crate::{
    catalog::naming::exposed_names,
    convert::{ListTools, UpdateTool, tool},
    error::Error,
    registry::{State, page, tool::Tool},
    store::{self, Connection},
};

/// Most bytes of definitions in one page: clients take 4 MiB by default, and texts are in there up to twice.
const PAGE_BYTES: usize = 1 << 20;

/// The tools of the registered servers.
#[derive(Debug)]
pub(super) struct Tools(pub(super) Arc<State>);

impl Tools {
    async fn list(&self, request: v1::ListToolsRequest) -> Result<v1::ListToolsResponse, Error> {
        let list = ListTools::try_from(request)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let server = match &list.server {
            Some(key) => Some(store::servers::get(&mut connection, key).await?.id),
            None => None,
        };
        let after = list.after.as_ref().map(|[server, tool]| (server.as_str(), tool.as_str()));
        let rows = store::tools::list(&mut connection, server, after, list.size).await?;
        let size = fitting(&rows, list.size);
        let (rows, more) = page::cut(rows, size);
        let next_page_token = rows.last().filter(|_| more).map(|last| list.token(last)).unwrap_or_default();
        let mut names = exposed(&mut connection).await?;
        let mut on_wire = |row: Tool| {
            let exposed = names.remove(&(row.server.clone(), row.name.clone())).unwrap_or_default();
            tool(row, exposed)
        };
        Ok(v1::ListToolsResponse { tools: rows.into_iter().map(&mut on_wire).collect(), next_page_token })
    }

    async fn update(&self, request: v1::UpdateToolRequest, caller: Caller) -> Result<v1::UpdateToolResponse, Error> {
        let update = UpdateTool::try_from(request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let server = store::servers::get(&mut transaction, &update.server).await?.id;
        let row = store::tools::update(&mut transaction, server, &update.tool, &update.change, caller.name()).await?;
        let mut names = exposed(&mut transaction).await?;
        store::commit(transaction).await?;
        tracing::info!(
            server.id = %server,
            tool.name = row.name,
            tool.overrides = ?row.overrides,
            caller.name = caller.name(),
            "hints or policy of a tool overridden"
        );
        let exposed = names.remove(&(row.server.clone(), row.name.clone())).unwrap_or_default();
        Ok(v1::UpdateToolResponse { tool: Some(tool(row, exposed)) })
    }
}

/// How many of the rows, at most `size` and at least one, are within [`PAGE_BYTES`].
fn fitting(rows: &[Tool], size: usize) -> usize {
    let mut bytes = 0;
    let fitting = rows.iter().take(size).take_while(|row| {
        bytes += row.definition.len();
        bytes <= PAGE_BYTES
    });
    fitting.count().max(1)
}

/// The names that engines see, by server and tool. They depend on all tools: no two may be alike.
async fn exposed(connection: &mut Connection) -> Result<HashMap<(String, String), String>, Error> {
    let settings = gatehouse_store::settings::load(connection).await?.settings;
    let pairs = store::tools::names(connection).await?;
    let borrowed: Vec<(&str, &str)> = pairs.iter().map(|(server, tool)| (server.as_str(), tool.as_str())).collect();
    let names = exposed_names(&borrowed, settings.tool_name_chars as usize);
    Ok(pairs.into_iter().zip(names).collect())
}

#[tonic::async_trait]
impl ToolService for Tools {
    async fn list_tools(
        &self,
        request: Request<v1::ListToolsRequest>,
    ) -> Result<Response<v1::ListToolsResponse>, Status> {
        answer(&methods::LIST_TOOLS, request, |request, _| self.list(request)).await
    }

    async fn update_tool(
        &self,
        request: Request<v1::UpdateToolRequest>,
    ) -> Result<Response<v1::UpdateToolResponse>, Status> {
        answer(&methods::UPDATE_TOOL, request, |request, caller| self.update(request, caller)).await
    }
}
