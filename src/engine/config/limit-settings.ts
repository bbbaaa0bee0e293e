import { integer } from './setting-kinds.ts';

/** The schema of the limits of keys and tenants. Each may be replaced for a tenant or a key (control/limits.ts). */
export const LIMIT_SETTINGS = {
  OM_RATE_QUERIES: integer(0, 0, 1_000_000_000).describe(
    'Most queries and explanations a minute for each key; 0 for no limit.',
  ),
  OM_RATE_ADDS: integer(0, 0, 1_000_000_000).describe(
    'Most requests a minute for each key that store, change or delete memories and what is theirs; 0 for no limit.',
  ),
  OM_RATE_BATCH_ITEMS: integer(0, 0, 1_000_000_000).describe(
    'Most items of batches a minute for each key; 0 for no limit.',
  ),
  OM_RATE_UPLOAD_MB: integer(0, 0, 1_000_000).describe(
    'Most bytes of uploaded documents a minute for each key (MB); 0 for no limit.',
  ),
  OM_TENANT_EVENT_STREAMS: integer(100, 0, 1_000).describe(
    'Most event streams that each tenant keeps open, in all processes; 0 for any number. A process opens 1,000.',
  ),
  OM_TENANT_PARSE_SECONDS: integer(0, 0, 1_000_000).describe(
    'Most time a minute for which the documents of each tenant keep parsers busy (s); 0 for no limit.',
  ),
  OM_TENANT_FETCHES: integer(0, 0, 1_000_000).describe(
    'Most pages a minute that are fetched for each tenant; 0 for no limit.',
  ),
  OM_TENANT_FETCHES_AT_ONCE: integer(0, 0, 10_000).describe(
    'Most pages that are fetched and read at once for each tenant, in all workers; 0 for no limit.',
  ),
  OM_TENANT_MAX_MB: integer(0, 0, 100_000_000).describe(
    'Most disk that the database of each tenant may use before adds get 507 (MB); 0 for no limit.',
  ),
  OM_TENANT_MAX_MEMORIES: integer(0, 0, 1_000_000_000).describe(
    'Most memories of each tenant before adds get 507; 0 for no limit.',
  ),
};
