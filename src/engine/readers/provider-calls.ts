import { EngineError, serialiseError } from '../errors.ts';
import { languageModelOf } from '../providers/language-model-of.ts';
import type { FromThread, Outcome, ProviderCall, ToThread } from './messages.ts';
import type { Read, ThreadServices } from './read.ts';

/** Makes provider calls for a thread, and records which of its reads wait for one. */
export function createProviderCalls(
  services: ThreadServices,
  {
    reads,
    post,
    onFree,
  }: { readonly reads: ReadonlyMap<number, Read>; readonly post: (message: ToThread) => void; onFree(): void },
) {
  /**
   * The reads that have called a provider, by id: the number of running calls, the time since when there have been any
   * (`performance.now()`), and the time for which there were any before (ms).
   */
  const waits = new Map<number, { calls: number; since: number; ms: number }>();
  return {
    /** Tells whether a read waits for a provider. */
    isWaiting: (id: number) => (waits.get(id)?.calls ?? 0) > 0,
    /** Returns the time that a read which has ended waited for providers (ms), and forgets the read. */
    waitedMs(id: number): number {
      const ms = waits.get(id)?.ms ?? 0;
      waits.delete(id);
      return ms;
    },
    /**
     * Makes a provider call for the read `id` and sends the outcome to the thread: `unavailable`, without a call, if
     * nobody waits for the read any more. It never rejects.
     */
    async make({ id, callId, call }: Extract<FromThread, { kind: 'call' }>): Promise<void> {
      const read = reads.get(id);
      if (read === undefined) return post({ kind: 'called', callId, outcome: failed(gone()) });
      const wait = waits.get(id) ?? { calls: 0, since: 0, ms: 0 };
      waits.set(id, wait);
      if (wait.calls === 0) wait.since = performance.now();
      wait.calls += 1;
      onFree();
      const ask = () => askProvider(services, call, read);
      const outcome = await (read.span === undefined ? ask() : read.span.run(ask));
      wait.calls -= 1;
      if (wait.calls === 0) wait.ms += performance.now() - wait.since;
      post({ kind: 'called', callId, outcome });
    },
  };
}

/** Calls a provider for a read of a thread. It never rejects: an error is returned as the `Outcome`. */
async function askProvider(
  { querySourceOf, languageModel }: ThreadServices,
  call: ProviderCall,
  { path, signal }: Read,
): Promise<Outcome> {
  try {
    if (call.kind === 'embed') {
      return { ok: true, value: (await querySourceOf(call.space, path)?.embedQuery(call.text, signal)) ?? null };
    }
    const model = languageModelOf(path, languageModel);
    if (model === null) throw new EngineError('internal', 'a reader thread asked for a language model');
    return { ok: true, value: await model.complete(call.request, signal) };
  } catch (error) {
    return failed(error);
  }
}

const failed = (error: unknown): Outcome => ({ ok: false, error: serialiseError(error) });
const gone = () => new EngineError('unavailable', 'nobody waits for this read any more');
