import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { type Refusal, returns } from '../../client.ts';
import { inTenant } from '../../parts/use-load.ts';

/** A page of a list. `next` is the cursor of the next page; undefined on the last one. */
export interface Page<Item, Cursor> {
  readonly items: readonly Item[];
  readonly next: Cursor | undefined;
}

/**
 * A list that is loaded page by page. `items` are those of all pages loaded so far; `isWhole` is true after the last
 * page. While a page is loaded, and after an error, `loadMore` does nothing; `reload` begins again with the first page.
 */
export interface Pages<Item> {
  readonly items: readonly Item[];
  readonly isWhole: boolean;
  readonly isLoading: boolean;
  readonly error: Refusal | undefined;
  readonly loadMore: () => void;
  readonly reload: () => void;
}

interface State<Item, Cursor> {
  readonly key: string;
  readonly items: readonly Item[];
  readonly next: Cursor | undefined;
  readonly isWhole: boolean;
  readonly error?: Refusal;
}

/**
 * Loads a list page by page. If `name` or the tenant changes, it begins again with the first page.
 * @param load loads the page at a cursor; without a cursor, the first page
 */
export function usePages<Item, Cursor>(
  name: string,
  load: (cursor: Cursor | undefined, signal: AbortSignal) => Promise<Page<Item, Cursor>>,
): Pages<Item> {
  const key = inTenant(name);
  const [state, setState] = useState<State<Item, Cursor>>({ key: '', items: [], next: undefined, isWhole: false });
  const [round, setRound] = useState(0);
  const [isLoading, setLoading] = useState(true);
  const stop = useRef(new AbortController());
  const busy = useRef(false);
  const latest = useRef(load);
  latest.current = load;
  const returned = returns.value;

  const fetchPage = useCallback(
    async (cursor: Cursor | undefined, before: readonly Item[], signal: AbortSignal) => {
      busy.current = true;
      setLoading(true);
      try {
        const { items, next } = await latest.current(cursor, signal);
        if (!signal.aborted) setState({ key, items: [...before, ...items], next, isWhole: next === undefined });
      } catch (error) {
        if (!signal.aborted) setState((state) => ({ ...state, key, error: error as Refusal }));
      } finally {
        if (!signal.aborted) {
          busy.current = false;
          setLoading(false);
        }
      }
    },
    [key],
  );

  useEffect(() => {
    stop.current.abort();
    stop.current = new AbortController();
    void fetchPage(undefined, [], stop.current.signal);
    return () => stop.current.abort();
  }, [key, round, returned]);

  const isCurrent = state.key === key;
  return {
    items: isCurrent ? state.items : [],
    isWhole: isCurrent && state.isWhole,
    isLoading: isLoading || !isCurrent,
    error: isCurrent ? state.error : undefined,
    loadMore: () => {
      if (busy.current || !isCurrent || state.isWhole || state.error !== undefined) return;
      void fetchPage(state.next, state.items, stop.current.signal);
    },
    reload: () => setRound((before) => before + 1),
  };
}
