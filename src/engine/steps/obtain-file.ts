import { DocumentError } from '../documents/document-error.ts';
import { readUpload } from '../documents/uploads.ts';
import type { FetchedFile } from '../ports.ts';
import { getGenerationRow, putFetched, putStages, type GenerationRow } from '../store/document-generations.ts';
import { isLabelledAlike, type DocumentReading } from './document-reading.ts';
import type { StepContext } from './step-context.ts';

/** The bytes of a document, with the format that its upload or server declared. */
export type SourceFile = Pick<FetchedFile, 'bytes' | 'declared' | 'charset' | 'extension'>;

/**
 * Reads a document's upload, or fetches its web page. For a fetched page it also stores size, hash, HTTP validators and
 * duration with the generation.
 * @returns `unchanged` if the page is the one from which the text that queries find was made, and the caller states the
 *   same fields; never for an upload, or for a document that is to be read in any case
 * @throws DocumentError `fetch_refused` if `OM_URL_INGEST` is off or the worker has no fetcher; what `readUpload`
 *   throws, such as `upload_missing`, and what `PageFetcher.fetch` throws
 */
export async function obtainFile(
  context: StepContext,
  { document, generation }: DocumentReading,
  signal: AbortSignal | undefined,
): Promise<SourceFile | 'unchanged'> {
  const { open, pageFetcher, config } = context;
  if (generation.source === 'upload') {
    const bytes = await readUpload(open().store, generation.upload);
    const { declared, charset, file_name: fileName } = generation;
    return { bytes, declared, charset, extension: extensionOf(fileName) };
  }
  if (!config.OM_URL_INGEST || pageFetcher === null)
    throw new DocumentError('fetch_refused', 'OM_URL_INGEST is off: documents are not fetched from URLs');
  const started = performance.now();
  const live = document.live_no === null ? null : getGenerationRow(open().store, document.live_no);
  const mayBeUnchanged =
    !generation.always && live !== null && live.hidden === 0 && live.format !== null && isGivenAlike(live, generation);
  const lastVersion = mayBeUnchanged ? { etag: live.etag, lastModified: live.last_modified } : null;
  const fetched = await pageFetcher.fetch(generation.url, lastVersion, signal);
  if (fetched === 'unchanged') return fetched;
  const { store } = open();
  store.write(() => {
    putFetched(store, generation.generation_no, fetched);
    putStages(store, generation.generation_no, { fetch: Math.round(performance.now() - started) });
  });
  return mayBeUnchanged && live.file_hash?.equals(fetched.sha256) ? 'unchanged' : fetched;
}

/** Whether the caller stated the same source, title and fields for both versions of a document. */
function isGivenAlike(one: GenerationRow, other: GenerationRow): boolean {
  const given = ['source', 'url', 'given_title'] as const;
  return isLabelledAlike(one, other) && given.every((name) => one[name] === other[name]);
}

function extensionOf(fileName: string): string {
  return /\.([A-Za-z0-9_+-]{1,16})$/.exec(fileName)?.[1]?.toLowerCase() ?? '';
}
