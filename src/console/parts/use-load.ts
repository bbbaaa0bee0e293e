import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { chosenTenant } from '../address.ts';
import { Refusal, returns } from '../client.ts';

/**
 * State of a request. `data` is undefined until the first answer; it stays during a reload and after a reload that
 * failed.
 */
export interface Loaded<Data> {
  readonly data: Data | undefined;
  readonly error: Refusal | undefined;
  readonly isLoading: boolean;
  /** Requests the data again. */
  readonly reload: () => void;
}

/** Returns the key with the chosen tenant added to it, so that data of two tenants are not confused. */
export function inTenant(key: string): string {
  return `${chosenTenant.value ?? ''} ${key}`;
}

/**
 * Loads data when a view appears, when `name` or the tenant changes, and when the service responds again after an
 * outage. A request that is no longer needed is aborted.
 * @param name name of the data; null loads nothing
 */
export function useLoad<Data>(name: string | null, load: (signal: AbortSignal) => Promise<Data>): Loaded<Data> {
  const key = name === null ? null : inTenant(name);
  const [state, setState] = useState<{ key: string | null; data?: Data; error?: Refusal; isLoading: boolean }>({
    key,
    isLoading: key !== null,
  });
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const returned = returns.value;

  useEffect(() => {
    if (key === null) return setState({ key, isLoading: false });
    const stop = new AbortController();
    setState((before) => ({ ...(before.key === key ? before : { key }), isLoading: true }));
    latest.current(stop.signal).then(
      (data) => stop.signal.aborted || setState({ key, data, isLoading: false }),
      (error: unknown) => {
        if (stop.signal.aborted) return;
        const refusal = error instanceof Refusal ? error : new Refusal(String(error), 0, 'internal');
        setState((before) => ({ ...before, key, error: refusal, isLoading: false }));
      },
    );
    return () => stop.abort();
  }, [key, round, returned]);

  const reload = useCallback(() => setRound((before) => before + 1), []);
  const isCurrent = state.key === key;
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading: isCurrent ? state.isLoading : key !== null,
    reload,
  };
}

/** Calls a function at an interval (ms) while the view is shown and the page is visible. */
export function useInterval(tick: () => void, ms: number): void {
  const latest = useRef(tick);
  latest.current = tick;
  useEffect(() => {
    const timer = setInterval(() => document.hidden || latest.current(), ms);
    return () => clearInterval(timer);
  }, [ms]);
}
