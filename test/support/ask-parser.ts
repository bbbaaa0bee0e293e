import type { DocumentParser, ParseRequest } from '../../src/engine/ports.ts';

/** Main module of a parser process that does what the document's content tells it to do (a deed, see the module). */
export const STUB_PARSER = new URL('./stub-parser-child.ts', import.meta.url);

/**
 * Main module of a parser process that tries every way out of its sandbox. The document's content is the number of a
 * port on which the test listens.
 */
export const PARSER_DOORS = new URL('./attacks/parser-doors.ts', import.meta.url);

/** Lets a stub parser do a deed (an entry of its table `DEEDS`), and returns what the deed returned. */
export async function askParser(
  pool: DocumentParser,
  deed: readonly [name: string, argument?: unknown],
  options?: Parameters<DocumentParser['parse']>[1],
): Promise<unknown> {
  return askWith(pool, JSON.stringify(deed), options);
}

/** Lets a stub parser read a document with this content, and returns its result, parsed from JSON. */
export async function askWith(
  pool: DocumentParser,
  file: string,
  options?: Parameters<DocumentParser['parse']>[1],
): Promise<unknown> {
  const result = await pool.parse(requestOf(file), options);
  return JSON.parse(result.chunks.map(({ content }) => content).join(''));
}

export function requestOf(content: string | Uint8Array, request: Partial<ParseRequest> = {}): ParseRequest {
  return {
    bytes: typeof content === 'string' ? Buffer.from(content) : content,
    declared: null,
    charset: null,
    extension: '',
    sizeTokens: 2048,
    overlapTokens: 256,
    ...request,
  };
}
