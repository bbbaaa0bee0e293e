/** The plain data of the engine. Times are Unix milliseconds; scores and weights lie in 0..1 unless said otherwise. */

export * from './types/memory.ts';
export * from './types/items.ts';
export * from './types/graph.ts';
export * from './types/lists.ts';
export * from './types/session-log.ts';
export * from './types/events.ts';
export * from './types/diff.ts';
export * from './types/recalls.ts';
export * from './types/learned.ts';
export * from './types/upkeep.ts';
export * from './types/evals.ts';
export * from './types/standing.ts';
export * from './types/links.ts';
export * from './types/filter.ts';
export * from './types/query.ts';
export * from './types/hits.ts';
export * from './types/entities.ts';
export * from './types/audit.ts';
export * from './types/documents.ts';
export * from './types/receipts.ts';
export * from './types/jobs.ts';
export * from './types/providers.ts';
export * from './types/privacy.ts';
export * from './types/stats.ts';
export * from './types/pages.ts';
export * from './types/portable.ts';
