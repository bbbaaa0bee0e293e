import type { DocumentParser, ParseRequest } from '../../src/engine/ports.ts';

/** The entry of a parser's process that does as its file says. */
export const STUB_PARSER = new URL('./stub-parser-child.ts', import.meta.url);

/** The entry of a parser's process that tries every way out; a file is the number of a port that is listened on. */
export const PARSER_DOORS = new URL('./attacks/parser-doors.ts', import.meta.url);

/** Has a stub parser do a deed; its answer. */
export async function askParser(
  pool: DocumentParser,
  deed: readonly [name: string, argument?: unknown],
  options?: Parameters<DocumentParser['parse']>[1],
): Promise<unknown> {
  return askWith(pool, JSON.stringify(deed), options);
}

/** Has a stub parser read a file; its answer. */
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
