/*
 * The process that reads documents, started by `adapters/parser-pool.ts`. Nothing that reads a file is loaded before
 * the process's doors are closed.
 */
import { serveParser } from './serve-parser.ts';

await serveParser(async (request, onPage) => {
  const { parseDocument } = await import('./parse-document.ts');
  return parseDocument(request, onPage);
});
