/** The limits of keys and tenants: those of the settings, replaced for a tenant, replaced for a key. */

/** The setting of each limit. The first four are rates a minute for each key; the others concern a whole tenant. */
export const LIMIT_SETTING = {
  queries: 'OM_RATE_QUERIES',
  adds: 'OM_RATE_ADDS',
  batch_items: 'OM_RATE_BATCH_ITEMS',
  upload_mb: 'OM_RATE_UPLOAD_MB',
  event_streams: 'OM_TENANT_EVENT_STREAMS',
  parse_seconds: 'OM_TENANT_PARSE_SECONDS',
  fetches: 'OM_TENANT_FETCHES',
  fetches_at_once: 'OM_TENANT_FETCHES_AT_ONCE',
  max_mb: 'OM_TENANT_MAX_MB',
  max_memories: 'OM_TENANT_MAX_MEMORIES',
} as const;

export type LimitName = keyof typeof LIMIT_SETTING;
/** The names of all limits. */
export const LIMIT_NAMES = Object.keys(LIMIT_SETTING) as [LimitName, ...LimitName[]];
/** The limits that a single key may have. */
export const KEY_LIMITS: ReadonlySet<LimitName> = new Set(['queries', 'adds', 'batch_items', 'upload_mb']);
/** Largest value of a limit. */
export const MAX_LIMIT = 1_000_000_000;

/** The value of each limit; 0 for no limit. */
export type Limits = Readonly<Record<LimitName, number>>;

/** Whose limits are meant: a tenant's, or those of one key in it. */
export interface LimitScope {
  readonly tenantId: string;
  /** Id of a key; `environment` for `OM_API_KEY`; left out for the tenant. */
  readonly keyId?: string | undefined;
}

/** New values by limit; null removes the stored one, and undefined leaves it. */
export type LimitChanges = { readonly [Name in LimitName]?: number | null | undefined };

/** Limits as they are stored and as they apply. A change by any process applies in all others within a second. */
export interface LimitRecords {
  /** Returns the limits that apply. It reads the file only after a change, so each request may call it. */
  inForce(scope: LimitScope): Limits;
  /** Returns the limits that were stored for exactly this tenant or key. */
  own(scope: LimitScope): Partial<Limits>;
  /**
   * Stores limits, or removes them, so that the next wider limit applies again.
   * @throws EngineError `not_found` for an unknown tenant or key; `invalid` for a limit that a key cannot have, or for
   *   a value that is no whole number in 0..`MAX_LIMIT`
   * @param by id of the key that asks for it, for the audit log; a command on this machine if left out
   */
  change(scope: LimitScope, changes: LimitChanges, by?: string): void;
}
