import type { Route, RouteGroup } from './route.ts';
import { addRoutes } from './routes/add.ts';
import { adminRoutes } from './routes/admin.ts';
import { auditRoutes } from './routes/audit.ts';
import { consoleRoutes } from './routes/console.ts';
import { diffRoutes } from './routes/diff.ts';
import { descriptionRoutes } from './routes/description.ts';
import { documentRoutes } from './routes/documents.ts';
import { entityRoutes } from './routes/entities.ts';
import { graphRoutes } from './routes/graph.ts';
import { erasureRoutes } from './routes/erasures.ts';
import { consolidationRoutes } from './routes/consolidations.ts';
import { evalRoutes } from './routes/evals.ts';
import { eventRoutes } from './routes/events.ts';
import { federationRoutes } from './routes/federation.ts';
import { ingestRoutes } from './routes/ingest.ts';
import { itemRoutes } from './routes/items.ts';
import { jobRoutes } from './routes/jobs.ts';
import { learnedRoutes } from './routes/learned.ts';
import { lgmRoutes } from './routes/lgm.ts';
import { limitRoutes } from './routes/limits.ts';
import { keyRoutes } from './routes/keys.ts';
import { linkRoutes } from './routes/links.ts';
import { mcpRoutes } from './routes/mcp.ts';
import { memoryRoutes } from './routes/memories.ts';
import { openMemoryRoutes } from './routes/openmemory.ts';
import { portableRoutes } from './routes/portable.ts';
import { memoryPageRoutes } from './routes/memory-pages.ts';
import { nameRoutes } from './routes/names.ts';
import { namespaceRoutes } from './routes/namespaces.ts';
import { providerRoutes } from './routes/providers.ts';
import { queryRoutes } from './routes/query.ts';
import { recallRoutes } from './routes/recalls.ts';
import { receiptRoutes } from './routes/receipts.ts';
import { reembedRoutes } from './routes/reembed.ts';
import { reflectRoutes } from './routes/reflect.ts';
import { serviceRoutes } from './routes/service.ts';
import { sessionLogRoutes } from './routes/session-logs.ts';
import { settingsRoutes } from './routes/settings.ts';
import { tenantRoutes } from './routes/tenants.ts';
import { standingRoutes } from './routes/standing.ts';
import { storeRoutes } from './routes/store.ts';
import { userRoutes } from './routes/users.ts';
import { webhookRoutes } from './routes/webhooks.ts';

/**
 * All routes, by subject; any other path is a 404. The first route that matches a path answers. So a route with a fixed
 * segment must be listed before a route that has a parameter in this segment.
 */
export const ROUTE_GROUPS: readonly RouteGroup[] = [
  { name: 'Adding', description: 'Storing memories.', routes: [...addRoutes, ...receiptRoutes] },
  {
    name: 'Documents',
    description: 'Files and pages that are too large for one memory: each is read into chunks, which are memories.',
    routes: [...ingestRoutes, ...documentRoutes],
  },
  {
    name: 'Querying',
    description: 'Finding the memories that answer a query, and explaining why they were found.',
    routes: [...queryRoutes, ...diffRoutes, ...recallRoutes],
  },
  {
    name: 'Federation',
    description: 'One question to several tenants and to other Cairn servers.',
    routes: federationRoutes,
  },
  { name: 'Links', description: 'Relations between memories.', routes: linkRoutes },
  {
    name: 'Memories',
    description: 'Reading, changing and erasing memories, one by one or all of a user.',
    routes: [...reflectRoutes, ...memoryPageRoutes, ...memoryRoutes, ...userRoutes, ...nameRoutes, ...graphRoutes],
  },
  {
    name: 'Items',
    description: 'Memories under keys of your own, within a user and a namespace, with any JSON value beside the text.',
    routes: [...itemRoutes, ...namespaceRoutes],
  },
  {
    name: 'Session logs',
    description: 'The items of a conversation, kept word for word and in their order.',
    routes: sessionLogRoutes,
  },
  {
    name: 'OpenMemory',
    description: "Second paths of routes, and summaries of users, which OpenMemory's clients request.",
    routes: openMemoryRoutes,
  },
  {
    name: 'LangGraph',
    description:
      "The routes that LangGraph's own clients call for a store; and OpenMemory's routes for the nodes of a graph, " +
      'with `OM_MODE=langgraph`.',
    routes: [...storeRoutes, ...lgmRoutes],
  },
  {
    name: 'Export and import',
    description: 'All data of a tenant, or a part of it, as lines of JSON.',
    routes: portableRoutes,
  },
  {
    name: 'Entities',
    description: 'Names that memories mention, and the relations that memories state between them.',
    routes: entityRoutes,
  },
  { name: 'Change feed', description: 'What happened in a tenant, in the order of its commits.', routes: eventRoutes },
  {
    name: 'Standing queries',
    description: 'Stored questions: each memory that answers one from now on is reported, once.',
    routes: standingRoutes,
  },
  { name: 'Webhooks', description: 'Addresses that are told of events, signed.', routes: webhookRoutes },
  {
    name: 'Evaluation sets',
    description: 'Questions with known answers, asked before and after a change.',
    routes: evalRoutes,
  },
  {
    name: 'Learned weights',
    description: 'Weights that were learned from feedback on recalls, each a proposal until a person accepts it.',
    routes: learnedRoutes,
  },
  {
    name: 'Consolidations',
    description: 'Memories that say nearly the same, gathered into one that points to them.',
    routes: consolidationRoutes,
  },
  {
    name: 'MCP',
    description: 'The memory as tools, resources and prompts of the Model Context Protocol.',
    routes: mcpRoutes,
  },
  { name: 'Jobs', description: 'Background work on memories and documents.', routes: jobRoutes },
  {
    name: 'Settings',
    description: "A tenant's defaults for its queries, and its privacy policy.",
    routes: settingsRoutes,
  },
  { name: 'Limits', description: 'Rate limits and quotas of tenants and keys.', routes: limitRoutes },
  { name: 'Audit log', description: 'What was done, when, and by which key.', routes: auditRoutes },
  {
    name: 'Erasures',
    description: 'Receipts of deletes: what was erased, when, and by which key.',
    routes: erasureRoutes,
  },
  { name: 'Tenants', description: 'The tenants of the service, each with memories of its own.', routes: tenantRoutes },
  { name: 'Keys', description: 'Who may call the API.', routes: keyRoutes },
  {
    name: 'Upkeep',
    description: 'Previews of decay, backups, and the settings and activity of the service.',
    routes: adminRoutes,
  },
  { name: 'Embedding model', description: 'A change from one embedding model to another.', routes: reembedRoutes },
  { name: 'Providers', description: 'Calls of embedding providers and language models.', routes: providerRoutes },
  {
    name: 'Console',
    description: 'The console, a page that shows what is stored to people, and its sessions.',
    routes: consoleRoutes,
  },
  {
    name: 'Service',
    description: 'State and description of the service itself.',
    routes: [...serviceRoutes, ...descriptionRoutes(() => ROUTE_GROUPS)],
  },
];

export const ROUTES: readonly Route[] = ROUTE_GROUPS.flatMap(({ routes }) => routes);
