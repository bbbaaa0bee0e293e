import { Counter, Gauge, type Registry } from 'prom-client';

/** Makes the metrics of documents and of the child processes that read them. */
export function createDocumentMetrics(registers: Registry[]) {
  return {
    documents: new Counter({
      name: 'cairn_documents_total',
      help:
        'Documents read, by format and outcome: shown, empty, unchanged, lost, failed. A document that was not read ' +
        'to its end has format none.',
      labelNames: ['format', 'outcome'],
      registers,
    }),
    documentPages: new Counter({
      name: 'cairn_document_pages_total',
      help: 'Pages of documents that were read; a document without pages counts as one.',
      registers,
    }),
    documentBytes: new Counter({
      name: 'cairn_document_bytes_total',
      help: 'Bytes of the files that were given to a parser, including files whose reading failed.',
      registers,
    }),
    documentFailures: new Counter({
      name: 'cairn_document_failures_total',
      help: 'Readings of documents that failed, by the code of the reason; each attempt counts.',
      labelNames: ['code'],
      registers,
    }),
    postponedDocuments: new Counter({
      name: 'cairn_postponed_documents_total',
      help:
        "Times that a document was postponed because its tenant's share was used up, by limit: parse_seconds, " +
        'fetches, fetches_at_once, max_mb or max_memories.',
      labelNames: ['limit'],
      registers,
    }),
    parsers: new Gauge({
      name: 'cairn_parsers',
      help: 'Child processes that read documents or wait for documents.',
      registers,
    }),
    parserExits: new Counter({
      name: 'cairn_parser_exits_total',
      help:
        'Child processes that ended, by reason: stopped (no longer needed), aborted (by the caller), time, output or ' +
        'reply (killed for exceeding a limit or for a malformed reply), memory, crashed.',
      labelNames: ['reason'],
      registers,
    }),
  };
}
