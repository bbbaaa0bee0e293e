import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Makes the metrics of HTTP requests and their answers. */
export function createHttpMetrics(registers: Registry[]) {
  return {
    httpRequests: new Counter({
      name: 'cairn_http_requests_total',
      help: 'Requests that were answered, by two segments of the route below /memory, else by one.',
      labelNames: ['route'],
      registers,
    }),
    /**
     * Counts responses without a label for the route, since every route with every status would be hundreds of series.
     */
    httpResponses: new Counter({
      name: 'cairn_http_responses_total',
      help: 'Answers, by status; 499 if the client hung up before the answer.',
      labelNames: ['status'],
      registers,
    }),
    httpDurations: new Histogram({
      name: 'cairn_http_request_duration_seconds',
      help:
        'Time from the first byte of a request to the end of its reply, by kind: add, query, documents, read, write. ' +
        'Streams of events and requests that watch the service (/health, /metrics) are left out.',
      labelNames: ['kind'],
      buckets: [0.025, 0.1, 0.5, 2.5],
      registers,
    }),
    refusedKeys: new Counter({
      name: 'cairn_refused_keys_total',
      help:
        "Requests with a key that was refused, by reason: the key is wrong, or the client's address is paused after " +
        'too many wrong keys.',
      labelNames: ['reason'],
      registers,
    }),
    limitedRequests: new Counter({
      name: 'cairn_limited_requests_total',
      help: 'Requests that a limit refused, by limit: queries, adds, batch_items, upload_bytes or event_streams.',
      labelNames: ['limit'],
      registers,
    }),
    httpInFlight: new Gauge({
      name: 'cairn_http_requests_in_flight',
      help: 'Requests that wait for the end of their answer, open streams of events and this scrape included.',
      registers,
    }),
    apiProcessEnds: new Counter({
      name: 'cairn_api_process_ends_total',
      help: 'Processes of the API (OM_API_PROCESSES) that ended by themselves; each is replaced.',
      registers,
    }),
  };
}
