/**
 * Converts between a query and the address of its view. Each field of the body of `POST /memory/query` is a parameter
 * of the same name, with a dot between an object and its field, such as `filters.tags=deploy`. So the changes that
 * `/explain` proposes can be put into the address as they are.
 */
import { presentTenant } from '../../session.ts';
import type { QueryBody } from '../../types.ts';

const NUMBERS =
  /^(k|k_sparse|k_dense|min_score|relative_floor|vector_weight|max_hops|decay_per_hop|per_document|session_prior|writer_share|token_budget|(column_)?weights\.\w+)$/;
const FLAGS = /^(deep_recall|entity_graph|collapse_similar)$/;
const LISTS = /^filters\.(tags|sessions|statuses|sectors|types|users|documents|written_by|external_ids)$/;
const TEXTS =
  /^(query|user_id|profile|rerank|cut|dense_sectors|startTime|endTime|as_of\.\w+|filters\.(event_time|created_at)\.\w+)$/;
/** Matches parameters of the view that are not fields of a query. */
const OF_VIEW = /^(tab|why|of|tenant|tenants|servers)$/;

/** Prefix of the parameters for the second settings in a comparison of two settings. */
export const OTHER = 'b:';

/**
 * Makes the body of a query from an address; undefined if it has no query text.
 * @param options `isOther` applies the parameters with the prefix `b:` as well, which make the second settings
 */
export function queryOf(params: URLSearchParams, { isOther = false } = {}): QueryBody | undefined {
  const fields = new Map<string, unknown>();
  for (const [name, value] of params) {
    if (name.startsWith(OTHER) ? !isOther : OF_VIEW.test(name)) continue;
    const field = name.startsWith(OTHER) ? name.slice(OTHER.length) : name;
    fields.set(field, valueOf(field, value));
  }
  const body: Record<string, unknown> = {};
  for (const [field, value] of fields) if (value !== undefined) setField(body, field.split('.'), value);
  if (typeof body['query'] !== 'string' || body['query'].trim() === '') return undefined;
  // A query from the console is for looking at, so it must not reinforce memories.
  return { ...body, reinforce: false, explain: true } as QueryBody;
}

/** Returns the names in a list of the address, such as `tenants=team,sales`. */
export function namesIn(params: URLSearchParams, name: string): string[] {
  return (params.get(name) ?? '').split(',').filter(Boolean);
}

/**
 * Fields of a query that mean the same in every tenant and on every server. A query that is sent to several of them has
 * only these.
 */
const OF_EACH = ['query', 'k', 'user_id', 'filters', 'min_score', 'cut', 'as_of', 'deep_recall'] as const;
/** Body of a query to several tenants and servers. */
export type FederatedBody = Pick<QueryBody, (typeof OF_EACH)[number]> & {
  readonly tenants: readonly string[];
  readonly servers: readonly string[];
};

/**
 * Makes the body of a query that is also sent to the `tenants` and `servers` of the address; undefined if it names none
 * of them. The present tenant is always included.
 */
export function federatedOf(params: URLSearchParams): FederatedBody | undefined {
  const [tenants, servers] = [namesIn(params, 'tenants'), namesIn(params, 'servers')];
  const query = queryOf(params);
  if (query === undefined || tenants.length + servers.length === 0) return undefined;
  const fields = OF_EACH.flatMap((name) => (query[name] === undefined ? [] : [[name, query[name]]]));
  const all = [...new Set([presentTenant(), ...tenants])];
  return { ...Object.fromEntries(fields), tenants: all, servers } as FederatedBody;
}

function valueOf(field: string, value: string): unknown {
  if (value === '') return undefined;
  if (NUMBERS.test(field)) return Number(value);
  if (FLAGS.test(field)) return value === 'true';
  if (LISTS.test(field)) return value.split(',').filter(Boolean);
  if (TEXTS.test(field)) return /^-?\d{9,}$/.test(value) && field !== 'query' ? Number(value) : value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function setField(body: Record<string, unknown>, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) body[name] = value;
  else setField((body[name] ??= {}) as Record<string, unknown>, rest, value);
}

/** Returns the address with the changes that an explanation names. A change to null removes the field. */
export function withChanges(params: URLSearchParams, changes: Readonly<Record<string, unknown>>): URLSearchParams {
  const next = new URLSearchParams(params);
  for (const [field, value] of Object.entries(changes)) {
    for (const name of [...next.keys()]) if (name === field || name.startsWith(`${field}.`)) next.delete(name);
    for (const [name, text] of paramsOf(field, value)) next.set(name, text);
  }
  return next;
}

function paramsOf(field: string, value: unknown): [string, string][] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value) && LISTS.test(field)) return [[field, value.join(',')]];
  if (typeof value === 'string') return [[field, value]];
  if (typeof value !== 'object') return [[field === 'as_of' ? 'as_of.valid' : field, JSON.stringify(value)]];
  if (!['as_of', 'weights', 'filters'].includes(field)) return [[field, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([name, inner]) => paramsOf(`${field}.${name}`, inner));
}
