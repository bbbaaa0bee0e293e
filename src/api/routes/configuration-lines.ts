/**
 * Lines of an export that concern a tenant as a whole: its defaults for queries, evaluation sets and standing queries.
 */
import {
  EngineError,
  type ImportOutcome,
  isEngineError,
  type NewEvalSet,
  type PortableConfiguration,
  type PortableLine,
  STANDING_LIMITS,
  takeTurn,
  type Tenant,
} from '../../engine/index.ts';
import { requestCaller } from '../control-turn.ts';
import type { TenantCall } from '../route.ts';
import type { EvalLine, SettingLine, StandingLine } from '../schemas/portable.ts';
import { takeForGuards } from '../take-tokens.ts';
import { evalItem, evalSetItem, toEvalSet } from '../wire/evals.ts';
import { retrievalItem, toRetrievalOptions } from '../wire/query.ts';
import { toStandingQuery } from '../wire/standing.ts';

/** A line in the form in which it is written. */
type WrittenLine = { readonly type: PortableConfiguration['type'] };

/**
 * Yields the configuration lines of an export. The lines of standing queries come before memories, so that an import
 * compares all memories with them.
 * @param asked.isWhole whether the export has no filter; if false, defaults and evaluation sets are left out
 * @param asked.userId the only user whose standing queries are exported; undefined for all users
 */
export async function* configurationOf(
  tenant: Tenant,
  { isWhole, userId }: { readonly isWhole: boolean; readonly userId?: string | undefined },
): AsyncGenerator<WrittenLine> {
  if (isWhole) {
    const defaults = retrievalItem(await tenant.retrievalDefaults());
    if (Object.values(defaults).some((value) => value !== undefined))
      yield { type: 'setting', name: 'retrieval', value: defaults } as WrittenLine;
    for (const { name } of await tenant.listEvals()) {
      const set = await ifThere(() => tenant.getEval(name));
      if (set !== undefined) yield { type: 'eval_set', ...evalSetItem(set) };
    }
  }
  // They are one page: one that is deleted meanwhile would move the others to another page.
  const { items } = await tenant.listStandingQueries({ limit: STANDING_LIMITS.queries, offset: 0, userId });
  for (const { id, query, userId: owner, given, minScore, createdAt, writtenBy } of items.toReversed()) {
    const filters = Object.keys(given).length > 0 ? given : undefined;
    const created_at = new Date(createdAt).toISOString();
    yield {
      type: 'standing_query',
      id,
      query,
      user_id: owner,
      filters,
      min_score: minScore,
      created_at,
      written_by: writtenBy,
    } as WrittenLine;
  }
}

/**
 * Tells whether a line of an import is a setting, an evaluation set or a standing query (a stored question that is
 * compared with each new memory).
 */
export function isConfiguration(line: PortableLine): line is PortableConfiguration {
  return line.type === 'setting' || line.type === 'eval_set' || line.type === 'standing_query';
}

/**
 * Imports a setting, an evaluation set or a standing query. If one with the same name or id exists already, it is not
 * changed.
 * @param parsed a line that its schema has parsed
 * @param how.dryRun true to store nothing. Then only what is stored now under the same name or id is compared: limits,
 *   guarded evaluation sets and earlier lines of the same import are not, so a line that gives `stored` may still be
 *   refused.
 * @param how.signal breaks off the runs of guarded evaluation sets, which a setting needs
 * @returns `stored`; `known` if an equal setting or set exists, or a standing query of the same user with this id,
 *   whatever it asks; `kept` if a different setting or a different set of this name exists; `refused` for an error
 *   `invalid`, `conflict` or `unprocessable`, such as an id that a standing query of another user has
 * @throws all other errors
 */
export async function importConfiguration(
  call: TenantCall,
  parsed: PortableConfiguration,
  { dryRun, signal }: { readonly dryRun: boolean; readonly signal: AbortSignal },
): Promise<ImportOutcome> {
  const { tenant } = call;
  const line = parsed as SettingLine | EvalLine | StandingLine;
  try {
    switch (line.type) {
      case 'setting':
        return await importDefaults(call, line, { dryRun, signal });
      case 'eval_set':
        return await importEval(tenant, line, dryRun);
      case 'standing_query':
        return await importStanding(tenant, line, dryRun);
    }
  } catch (error) {
    if (!isEngineError(error) || !REFUSING.has(error.code)) throw error;
    return { kind: 'refused', error: { code: error.code, message: error.message } };
  }
}

const REFUSING: ReadonlySet<string> = new Set(['invalid', 'conflict', 'unprocessable']);

/**
 * Imports the defaults for queries, if the tenant has none of its own. It takes the tokens of `queries` and runs the
 * guarded evaluation sets as `PUT /settings/retrieval` does.
 */
async function importDefaults(
  call: TenantCall,
  { value }: SettingLine,
  { dryRun, signal }: { readonly dryRun: boolean; readonly signal: AbortSignal },
): Promise<ImportOutcome> {
  const { tenant } = call;
  const wanted = toRetrievalOptions(value);
  const present = JSON.stringify(retrievalItem(await tenant.retrievalDefaults()));
  if (present === JSON.stringify(retrievalItem(wanted))) return { kind: 'known' };
  if (present !== '{}') return { kind: 'kept' };
  if (dryRun) return { kind: 'stored' };
  await takeForGuards(call);
  await tenant.putRetrievalDefaults(wanted, { signal, caller: requestCaller(call) });
  return { kind: 'stored' };
}

async function importEval(tenant: Tenant, line: EvalLine, dryRun: boolean): Promise<ImportOutcome> {
  const wanted = toEvalSet(line);
  const there = await ifThere(() => tenant.getEval(line.name));
  if (there !== undefined) {
    return { kind: (await isSameSet(there, wanted)) ? 'known' : 'kept' };
  }
  if (!dryRun) await tenant.putEval(wanted);
  return { kind: 'stored' };
}

/**
 * Tells whether two sets are equal apart from their names. It compares them item by item, and lets other requests run
 * in between, since a set may have megabytes.
 */
async function isSameSet(one: NewEvalSet, other: NewEvalSet): Promise<boolean> {
  if (one.guard !== other.guard || one.items.length !== other.items.length) return false;
  for (const [at, item] of one.items.entries()) {
    await takeTurn();
    if (JSON.stringify(evalItem(item)) !== JSON.stringify(evalItem(other.items[at]!))) return false;
  }
  return true;
}

async function importStanding(tenant: Tenant, line: StandingLine, dryRun: boolean): Promise<ImportOutcome> {
  const { id, query, user_id: owner, filters, min_score: score, created_at: at } = line;
  const there = await ifThere(() => tenant.getStandingQuery(id));
  if (there !== undefined) {
    if (there.userId === owner) return { kind: 'known' };
    throw new EngineError('conflict', 'id: a standing query of another user has this id');
  }
  const body = { query, user_id: owner ?? undefined, filters, min_score: score ?? undefined };
  if (!dryRun) await tenant.createStandingQuery({ ...toStandingQuery(body), made: { id, at } });
  return { kind: 'stored' };
}

async function ifThere<Thing>(read: () => Promise<Thing>): Promise<Thing | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isEngineError(error, 'not_found')) return undefined;
    throw error;
  }
}
