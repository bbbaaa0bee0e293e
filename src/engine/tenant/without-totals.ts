import type { Tenant } from '../engine.ts';
import { EngineError, isEngineError } from '../errors.ts';
import type { AddReply } from '../types.ts';

/** Refusals whose message counts what the whole tenant has, each with the words that leave the numbers out. */
const COUNTING = [
  [/^quota (\w+ \(\w+\)): .*$/, 'storage_full', 'quota $1: the tenant has no room for this; deletes still work'],
  [/^\d+ jobs wait, the cap (\w+) is \d+$/, 'unavailable', 'too many jobs wait, see $1'],
] as const;

/**
 * Returns the tenant for callers who must not learn how much the tenant as a whole has: where it refuses a write, or
 * the rest of a divided add, over a quota or over `OM_MAX_BACKLOG`, the words name the limit without any number.
 * Everything else is unchanged.
 */
export function withoutTotals(tenant: Tenant): Tenant {
  return new Proxy(tenant, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]): unknown => {
        const result: unknown = Reflect.apply(value, target, given);
        if (!(result instanceof Promise)) return result;
        const answered = name === 'addMemories' ? (result as Promise<AddReply>).then(outcomesWithoutTotals) : result;
        return answered.catch(throwWithoutTotals);
      };
    },
  });
}

function outcomesWithoutTotals(reply: AddReply): AddReply {
  const outcomes = reply.outcomes.map((outcome) =>
    outcome.kind === 'rejected'
      ? { ...outcome, error: { ...outcome.error, message: wordsWithoutTotals(outcome.error) } }
      : outcome,
  );
  return { ...reply, outcomes };
}

function throwWithoutTotals(error: unknown): never {
  if (!isEngineError(error)) throw error;
  const message = wordsWithoutTotals(error);
  if (message === error.message) throw error;
  const { code, retryAfterMs } = error;
  throw new EngineError(code, message, { cause: error, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
}

/** Returns the message of an error without the numbers of the whole tenant. */
function wordsWithoutTotals({ code, message }: { readonly code: string; readonly message: string }): string {
  const found = COUNTING.find(([form, its]) => code === its && form.test(message));
  return found === undefined ? message : message.replace(found[0], found[2]);
}
