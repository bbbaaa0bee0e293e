import type { Tenant } from '../engine.ts';
import { EngineError, isEngineError } from '../errors.ts';

/** Refusals whose message counts what the whole tenant has, each with the words that leave the numbers out. */
const COUNTING = [
  [/^quota (\w+ \(\w+\)): .*$/, 'storage_full', 'quota $1: the tenant has no room for this; deletes still work'],
  [/^\d+ jobs wait, the cap (\w+) is \d+$/, 'unavailable', 'too many jobs wait, see $1'],
] as const;

/**
 * Returns the tenant for callers who must not learn how much the tenant as a whole has: where it refuses a write over a
 * quota or over `OM_MAX_BACKLOG`, the error names the limit without any number. Everything else is unchanged.
 */
export function withoutTotals(tenant: Tenant): Tenant {
  return new Proxy(tenant, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]): unknown => {
        const result: unknown = Reflect.apply(value, target, given);
        return result instanceof Promise ? result.catch(throwWithoutTotals) : result;
      };
    },
  });
}

function throwWithoutTotals(error: unknown): never {
  if (!isEngineError(error)) throw error;
  const { code, message, retryAfterMs } = error;
  const found = COUNTING.find(([form, its]) => code === its && form.test(message));
  if (found === undefined) throw error;
  const options = { cause: error, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  throw new EngineError(code, message.replace(found[0], found[2]), options);
}
