import { resolveName } from '../entities/extract.ts';
import { foldName } from '../entities/modes.ts';
import { EngineError } from '../errors.ts';
import { findEntity } from '../store/entity-lists.ts';
import { compileFilter } from '../store/filter.ts';
import { createWorkBudget, runWithin } from '../store/work-budget.ts';
import type { EntityDetails } from '../types.ts';
import type { ReadContext } from './read-context.ts';
import { workLimits } from './work-limits.ts';

/**
 * Reads what memories say about a name.
 * @throws EngineError `not_found` if no memory that a query could find mentions the name, or none is found within the
 *   work budget of one request
 */
export function readEntity(
  { open, clock, config }: ReadContext,
  {
    name,
    userId,
    tags,
  }: {
    readonly name: string;
    readonly userId: string | undefined;
    readonly tags?: readonly string[] | undefined;
  },
): EntityDetails {
  const { store } = open();
  const filter = compileFilter({ userIds: userId === undefined ? undefined : [userId], tags }, clock.now());
  // The name may be an alias: `k8s` is counted as `kubernetes`.
  const entity = runWithin(createWorkBudget(workLimits(config)), () =>
    [...new Set([foldName(name), resolveName(name)])]
      .map((folded) => store.read(() => findEntity(store, folded, { userId, filter })))
      .find((details) => details !== undefined),
  );
  if (entity === undefined) throw new EngineError('not_found', 'no memory mentions this name');
  return entity;
}
