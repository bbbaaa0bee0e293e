import type { Tenant } from '../engine.ts';
import { EngineError, isEngineError } from '../errors.ts';
import type { AddReply, Document, DocumentReply, ErasureReceipt, Receipted } from '../types.ts';

/** Errors whose message counts what the whole tenant has, each with the words that leave the numbers out. */
const COUNTING = [
  [/^quota (\w+ \(\w+\)): .*$/, 'storage_full', 'quota $1: the tenant has no room for this; deletes still work'],
  [/^it waits: (max_\w+ \(\w+\)) .*$/, 'storage_full', 'it waits: $1 leaves no room for it'],
  [/^\d+ jobs wait, the cap (\w+) is \d+$/, 'unavailable', 'too many jobs wait, see $1'],
] as const;

/** For each method whose result may count what the whole tenant has: what leaves these numbers out of the result. */
const REWORDED: { readonly [Name in keyof Tenant]?: (result: ResultOf<Name>) => ResultOf<Name> } = {
  addMemories: outcomesWithoutTotals,
  getJob: failureWithoutTotals,
  getDocument: failureWithoutTotals,
  cancelDocument: failureWithoutTotals,
  addDocument: documentWithoutTotals,
  replaceDocument: documentWithoutTotals,
  listDocuments: ({ items, total }) => ({ items: items.map(failureWithoutTotals), total }),
  streamDocuments: ({ slices, ...listed }) => ({ slices: slicesWithoutTotals(slices), ...listed }),
  deleteMemory: receiptWithoutTotals,
  deleteMemories: receiptWithoutTotals,
  deleteItem: receiptWithoutTotals,
  deleteNamespace: receiptWithoutTotals,
  deleteDocument: receiptWithoutTotals,
};

type ResultOf<Name extends keyof Tenant> = Tenant[Name] extends (...given: never[]) => Promise<infer Result>
  ? Result
  : never;

/**
 * Returns the tenant for callers who must not learn how much the tenant as a whole has. Where a quota or
 * `OM_MAX_BACKLOG` refuses a write or the rest of a divided add, or makes a document wait or fail, the words name the
 * limit without any number. The receipt of a delete has no `cachedEmbeddings`, which would tell whether anybody else
 * has stored the same text. Everything else is unchanged.
 */
export function withoutTotals(tenant: Tenant): Tenant {
  return new Proxy(tenant, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value !== 'function') return value;
      const reworded = REWORDED[name as keyof Tenant] as ((result: unknown) => unknown) | undefined;
      return (...given: unknown[]): unknown => {
        const result: unknown = Reflect.apply(value, target, given);
        if (!(result instanceof Promise)) return result;
        return (reworded === undefined ? result : result.then(reworded)).catch(throwWithoutTotals);
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

/** Leaves the numbers out of the words that say why a job or a document waits or has failed. */
function failureWithoutTotals<Failed extends Pick<Document, 'error'>>(failed: Failed): Failed {
  const { error } = failed;
  return error === null ? failed : { ...failed, error: { ...error, message: wordsWithoutTotals(error) } };
}

function documentWithoutTotals(reply: DocumentReply): DocumentReply {
  return { ...reply, document: failureWithoutTotals(reply.document) };
}

async function* slicesWithoutTotals(slices: AsyncIterable<readonly Document[]>): AsyncGenerator<readonly Document[]> {
  for await (const slice of slices) yield slice.map(failureWithoutTotals);
}

function receiptWithoutTotals({
  cachedEmbeddings: _,
  ...receipt
}: Receipted<ErasureReceipt>): Receipted<ErasureReceipt> {
  return receipt;
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
