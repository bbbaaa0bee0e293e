/** Finds remedies for a memory that fails a condition of the filter. */

import type { AsOf, Memory, MemoryFilter, MemoryQuery } from '../types.ts';
import type { Inspection } from './inspect.ts';
import type { Attempt, Remedy } from './remedy-trials.ts';

/**
 * For those conditions of the filter, by name, which one field of the request's filter makes: the field that must be
 * left out to remove the condition.
 */
const FIELDS: Readonly<Record<string, keyof MemoryFilter>> = {
  'filters.sessions': 'sessionIds',
  'filters.types': 'types',
  'filters.written_by': 'writtenBy',
  'filters.external_ids': 'externalIds',
  'filters.documents': 'documentIds',
  'filters.namespace': 'namespace',
  'filters.files': 'files',
  'filters.tags': 'tags',
  'filters.min_salience': 'minSalience',
};

/**
 * Returns the change that removes the first condition of the filter that the memory fails. The next trial shows whether
 * the memory fails another condition. Returns undefined if no change of the request removes that condition.
 */
export async function passFilter(
  request: MemoryQuery,
  inspection: Inspection,
  attempt: Attempt,
): Promise<Remedy | undefined> {
  const { failedFilters, memory } = inspection;
  const [name] = failedFilters;
  const without = (says: string, fields: readonly string[], change: Partial<MemoryFilter>): Remedy => ({
    says,
    lifts: 'condition',
    sets: Object.fromEntries(fields.map((field) => [field, null])),
    request: { ...request, filter: { ...request.filter, ...change } },
  });
  const field = name === undefined ? undefined : FIELDS[name];
  if (field !== undefined) return without(`remove ${name!}`, [name!], { [field]: undefined });
  switch (name) {
    case 'filters.sectors':
      return without('remove filters.sectors (and filters.sector)', [name, 'filters.sector'], { sectors: undefined });
    case 'filters.event_time':
      return without('remove filters.event_time', [name], { eventFrom: undefined, eventTo: undefined });
    case 'filters.created_at':
      return without(
        'remove filters.created_at (and startTime, endTime, which mean the same)',
        [name, 'startTime', 'endTime', 'filters.startTime', 'filters.endTime'],
        { createdFrom: undefined, createdTo: undefined },
      );
    case 'filters.statuses': {
      const statuses = [...(request.filter.statuses ?? []), memory.status];
      return {
        says: `it is ${memory.status}: add that to filters.statuses`,
        lifts: 'condition',
        sets: { 'filters.statuses': statuses },
        request: { ...request, filter: { ...request.filter, statuses } },
      };
    }
    case 'status':
      return {
        says: `it is ${memory.status}: set deep_recall to true`,
        lifts: 'condition',
        sets: { deep_recall: true },
        request: { ...request, deepRecall: true },
      };
    case 'validity':
    case 'as_of.valid':
      return lookBack(request, inspection, attempt);
    case 'as_of.recorded':
      return setAsOf(
        request,
        { ...request.asOf, recorded: memory.createdAt },
        `it was stored later: set as_of.recorded to ${memory.createdAt}`,
      );
    default:
      return name === undefined ? undefined : withoutMetadata(request, name);
  }
}

/**
 * Returns the change that removes the first condition of the filter that a source of the memory fails, which keeps out
 * the memory, too. Returns undefined for a condition on time, and if no change of the request removes that condition.
 */
export async function showSource(
  request: MemoryQuery,
  inspection: Inspection,
  attempt: Attempt,
): Promise<Remedy | undefined> {
  const [name] = inspection.failedBySource;
  // A change for a named status or a time is made from the memory itself, whose source has another.
  if (name === undefined || name === 'filters.statuses' || TIME_CONDITIONS.has(name)) return undefined;
  const remedy = await passFilter(request, { ...inspection, failedFilters: [name] }, attempt);
  const change = name === 'status' ? 'set deep_recall to true' : remedy?.says;
  return remedy && { ...remedy, says: `one of the memories of which it was made fails ${name}: ${change}` };
}

const METADATA = 'filters.metadata.';

function withoutMetadata(request: MemoryQuery, name: string): Remedy | undefined {
  if (!name.startsWith(METADATA)) return undefined;
  const key = name.slice(METADATA.length);
  const metadata = Object.fromEntries(Object.entries(request.filter.metadata ?? {}).filter(([other]) => other !== key));
  return {
    says: `remove ${name}`,
    lifts: 'condition',
    sets: { [name]: null },
    request: { ...request, filter: { ...request.filter, metadata } },
  };
}

/**
 * Looks for a time (`as_of`) at which the memory was valid and its event had happened. It tries the first such time
 * with the recorded state that the request names; then with other recorded states: the present one, and those before
 * each of the memory's last changes, without the filter's sectors, which a recorded state does not go with. Returns
 * undefined if no time helps.
 */
async function lookBack(request: MemoryQuery, inspection: Inspection, attempt: Attempt): Promise<Remedy | undefined> {
  const holds = async (changed: MemoryQuery) => {
    const tried = await attempt(changed);
    return tried !== undefined && !tried.inspection.failedFilters.some((name) => TIME_CONDITIONS.has(name));
  };
  const valid = firstHeld(inspection.memory);
  if (valid !== null && (await holds({ ...request, asOf: { ...request.asOf, valid } })))
    return setAsOf(request, { ...request.asOf, valid }, `it did not hold then: set as_of.valid to ${valid}`);
  const times = [undefined, ...inspection.changedAt.map((at) => at - 1)].filter(
    (at) => at !== request.asOf?.recorded && (at === undefined || at >= inspection.memory.createdAt),
  );
  for (const recorded of times) {
    const within = recorded === undefined ? request : withoutSectors(request);
    const trial = await attempt({ ...within, asOf: recorded === undefined ? undefined : { recorded } });
    const moment = trial === undefined ? null : firstHeld(trial.inspection.memory);
    if (moment === null) continue;
    const asOf: AsOf = { valid: moment, ...(recorded === undefined ? {} : { recorded }) };
    const recordedChange = recorded === undefined ? 'remove as_of.recorded' : `as_of.recorded to ${recorded}`;
    const says = `it did not hold as recorded then: set as_of.valid to ${moment} and ${recordedChange}`;
    if (!(await holds({ ...within, asOf }))) continue;
    const remedy = setAsOf(within, asOf, says);
    if (within === request) return remedy;
    const withoutThem = { 'filters.sectors': null, 'filters.sector': null };
    return { ...remedy, says: `${says}; remove filters.sectors`, sets: { ...remedy.sets, ...withoutThem } };
  }
  return undefined;
}

/** Returns the request without sectors: what sectors a memory had earlier is not kept. */
function withoutSectors(request: MemoryQuery): MemoryQuery {
  return request.filter.sectors === undefined
    ? request
    : { ...request, filter: { ...request.filter, sectors: undefined } };
}

/** Names of the filter's conditions on time, as `Inspection.failedFilters` spells them. */
export const TIME_CONDITIONS: ReadonlySet<string> = new Set(['validity', 'as_of.valid', 'as_of.recorded']);

/**
 * Returns the first time, Unix ms, at which the memory was valid and its event had happened; null if there is none,
 * since its validity ended before the event.
 */
export function firstHeld({ validFrom, validTo, eventTime }: Memory): number | null {
  const first = Math.max(validFrom ?? -Infinity, eventTime);
  return validTo !== null && first >= validTo ? null : first;
}

function setAsOf(request: MemoryQuery, asOf: AsOf, says: string): Remedy {
  const { valid, recorded } = asOf;
  return {
    says,
    lifts: 'condition',
    sets: { as_of: { ...(valid === undefined ? {} : { valid }), ...(recorded === undefined ? {} : { recorded }) } },
    request: { ...request, asOf },
  };
}
