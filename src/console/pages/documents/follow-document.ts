import { follow } from '../../client.ts';
import type { DocumentItem } from '../../types.ts';

const ENDS = new Set(['ready', 'empty', 'failed', 'cancelled']);

/**
 * Follows a document by its event stream until the server has finished processing it, and calls `onState` at each
 * change. If the document is removed or the service refuses the stream, the calls end without a word.
 * @returns a function that stops following it
 */
export function followDocument(document: DocumentItem, onState: (document: DocumentItem) => void): () => void {
  const stop = new AbortController();
  if (!ENDS.has(document.state)) {
    const onEvent = (event: string, data: unknown) => {
      if (event !== 'state') return true;
      onState(data as DocumentItem);
      return ENDS.has((data as DocumentItem).state);
    };
    follow(`/documents/${document.id}/events`, onEvent, stop.signal).catch(() => {});
  }
  return () => stop.abort();
}
