import type { Route, RouteGroup } from './route.ts';
import { addRoutes } from './routes/add.ts';
import { descriptionRoutes } from './routes/description.ts';
import { documentRoutes } from './routes/documents.ts';
import { entityRoutes } from './routes/entities.ts';
import { ingestRoutes } from './routes/ingest.ts';
import { jobRoutes } from './routes/jobs.ts';
import { linkRoutes } from './routes/links.ts';
import { memoryRoutes } from './routes/memories.ts';
import { providerRoutes } from './routes/providers.ts';
import { queryRoutes } from './routes/query.ts';
import { reembedRoutes } from './routes/reembed.ts';
import { reflectRoutes } from './routes/reflect.ts';
import { serviceRoutes } from './routes/service.ts';
import { settingsRoutes } from './routes/settings.ts';
import { userRoutes } from './routes/users.ts';

/**
 * Every path that is answered, by subject; anything else is a 404. A path is looked for from top to bottom, so one with
 * a fixed segment stands before one with a parameter in its place.
 */
export const ROUTE_GROUPS: readonly RouteGroup[] = [
  { name: 'Adding', description: 'Memories on their way in.', routes: addRoutes },
  {
    name: 'Documents',
    description: 'Files and pages that are too large for one memory: each is read into chunks, which are memories.',
    routes: [...ingestRoutes, ...documentRoutes],
  },
  { name: 'Querying', description: 'Memories that fit a question, and why.', routes: queryRoutes },
  { name: 'Links', description: 'What memories have to do with each other.', routes: linkRoutes },
  {
    name: 'Memories',
    description: 'Memories one by one, and all of a user.',
    routes: [...reflectRoutes, ...memoryRoutes, ...userRoutes],
  },
  {
    name: 'Entities',
    description: 'Names that memories mention, and what they state about two.',
    routes: entityRoutes,
  },
  { name: 'Jobs', description: 'Work that is owed to memories and documents.', routes: jobRoutes },
  { name: 'Settings', description: "A tenant's defaults for its queries.", routes: settingsRoutes },
  { name: 'Embedding model', description: 'A change from one embedding model to another.', routes: reembedRoutes },
  { name: 'Providers', description: 'Calls of embedding providers and language models.', routes: providerRoutes },
  {
    name: 'Service',
    description: 'The service itself.',
    routes: [...serviceRoutes, ...descriptionRoutes(() => ROUTE_GROUPS)],
  },
];

export const ROUTES: readonly Route[] = ROUTE_GROUPS.flatMap(({ routes }) => routes);
