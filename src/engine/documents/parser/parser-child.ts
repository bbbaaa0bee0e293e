/*
 * The process that reads documents, started by `adapters/parser-pool.ts`. Nothing that reads a file is loaded before
 * the process is sandboxed.
 */
import { serveParser } from './serve-parser.ts';

const loadReader = () => import('./parse-document.ts');

await serveParser(
  async (request, onPage) => (await loadReader()).parseDocument(request, onPage),
  async () => (await loadReader()).loadCommonParts(),
);
