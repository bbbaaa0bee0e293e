import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished } from 'vitest';

/** A collector of traces that receives OTLP over HTTP, in JSON. */
export interface OtlpReceiver {
  /** Address of the collector, for the setting OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** All request bodies so far, as they were sent. */
  readonly text: string;
  /** Resource attributes of the senders, each set once. */
  readonly senders: readonly Attributes[];
  /** Waits until a trace has spans of all these names, and returns it. */
  traceWith(traceId: string, names: readonly string[]): Promise<Trace>;
}

type Attributes = Readonly<Record<string, string | number>>;

interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Id of the parent span; '' for the first span of a trace. */
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  readonly attributes: Attributes;
  /** Ids of the spans to which this span has links. */
  readonly links: readonly string[];
  readonly hasFailed: boolean;
  /** Start of the span in nanoseconds since 1970. */
  readonly startedAt: bigint;
  readonly endedAt: bigint;
}

interface Trace {
  readonly spans: readonly ReceivedSpan[];
  /** Returns the only span of this name. */
  span(name: string): ReceivedSpan;
  /** Returns the names of the spans from the first span down to the span of this name. */
  pathTo(name: string): string[];
}

const KINDS = ['internal', 'internal', 'server', 'client', 'producer', 'consumer'] as const;
const FAILED = 2;

interface Body {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly WireAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

interface WireAttribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number; readonly doubleValue?: number };
}

interface WireSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: readonly WireAttribute[];
  readonly links: readonly { readonly spanId: string }[];
  readonly status: { readonly code: number };
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const senders = new Map<string, Attributes>();
  let text = '';
  const server = http.createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part: string) => (body += part));
    request.on('end', () => {
      text += body;
      if (request.url !== '/v1/traces') return void response.writeHead(404).end();
      for (const { resource, scopeSpans } of (JSON.parse(body) as Body).resourceSpans) {
        const attributes = attributesOf(resource.attributes);
        senders.set(JSON.stringify(attributes), attributes);
        spans.push(...scopeSpans.flatMap((scope) => scope.spans.map(toSpan)));
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    get text() {
      return text;
    },
    get senders() {
      return [...senders.values()];
    },
    async traceWith(traceId, names) {
      const find = () => spans.filter((span) => span.traceId === traceId);
      await expect.poll(() => find().map(({ name }) => name)).toEqual(expect.arrayContaining([...names]));
      return createTrace(find());
    },
  };
}

function createTrace(spans: readonly ReceivedSpan[]): Trace {
  const span = (name: string) => {
    const found = spans.filter((one) => one.name === name);
    expect(found, name).toHaveLength(1);
    return found[0]!;
  };
  const pathTo = (name: string): string[] => {
    const { parentSpanId } = span(name);
    const parent = spans.find(({ spanId }) => spanId === parentSpanId);
    return [...(parent === undefined ? [] : pathTo(parent.name)), name];
  };
  return { spans, span, pathTo };
}

function toSpan(span: WireSpan): ReceivedSpan {
  const { traceId, spanId, parentSpanId = '', name } = span;
  return {
    traceId,
    spanId,
    parentSpanId,
    name,
    kind: KINDS[span.kind]!,
    attributes: attributesOf(span.attributes),
    links: span.links.map((link) => link.spanId),
    hasFailed: span.status.code === FAILED,
    startedAt: BigInt(span.startTimeUnixNano),
    endedAt: BigInt(span.endTimeUnixNano),
  };
}

function attributesOf(attributes: readonly WireAttribute[]): Attributes {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? value.doubleValue ?? 0]),
  );
}
