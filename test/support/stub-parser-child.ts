/*
 * A parser's process whose parser does what its file says, so that a test can have it misbehave. A file is a line of
 * JSON `[deed, ...arguments]`; what the deed returns becomes the document's text, as JSON.
 */
import fs from 'node:fs';
import { DocumentError } from '../../src/engine/documents/document-error.ts';
import { encodeHead, REPLY_FD } from '../../src/engine/documents/parser/parser-frames.ts';
import { serveParser } from '../../src/engine/documents/parser/serve-parser.ts';

type Deed = (argument: never, onPage: (done: number, pages: number) => void) => unknown;

const kept: Buffer[] = [];
let calls = 0;

const DEEDS: Record<string, Deed> = {
  echo: (text: string) => text,
  calls: () => ++calls,
  pid: () => process.pid,
  environment: () => [process.env, process.argv.length, process.cwd()],
  pages: async (pages: number, onPage) => {
    for (let page = 1; page <= pages; page++) {
      onPage(page, pages);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  },
  loop: () => {
    for (;;);
  },
  sleep: () => new Promise(() => setInterval(() => {}, 1000)),
  compute: (ms: number) => {
    for (const before = process.cpuUsage(); process.cpuUsage(before).user < ms * 1000;);
    return 'computed';
  },
  'loop after a page': (_: never, onPage) => {
    const until = performance.now() + 400;
    while (performance.now() < until);
    onPage(1, 2);
    for (;;);
  },
  'fill the heap': () => {
    for (const held: object[][] = []; ;) held.push(Array.from({ length: 10_000 }, () => ({})));
  },
  'fill buffers': () => {
    for (const held: Buffer[] = []; ;) held.push(Buffer.alloc(4 * 1024 * 1024, 1));
  },
  'fill buffers gradually': async () => {
    for (const held: Buffer[] = []; ; await new Promise(setImmediate)) held.push(Buffer.alloc(1024 * 1024, 1));
  },
  'keep buffers': () => {
    kept.push(Buffer.alloc(230 * 1024 * 1024, 1));
    return process.pid;
  },
  hold: (mb: number) => {
    kept.push(Buffer.alloc(mb * 1024 * 1024, 1));
    return 'held';
  },
  exit: () => process.exit(0),
  abort: () => process.abort(),
  'print much': () => {
    for (let line = 0; line < 1000; line++) {
      console.log('x'.repeat(1000));
      console.error('x'.repeat(1000));
    }
    return 'printed';
  },
  'flood frames': () => {
    for (const frames = Buffer.concat(Array.from({ length: 1_000 }, () => progressFrame(0))); ;)
      fs.writeSync(REPLY_FD, frames);
  },
  'flood bytes': () => {
    for (const frame = progressFrame(1024 * 1024); ;) fs.writeSync(REPLY_FD, frame);
  },
  'claim a large frame': () => {
    fs.writeSync(REPLY_FD, Buffer.from([2, 0, 0, 0, 255, 255, 255, 255]));
    for (;;);
  },
  'reply nonsense': () => {
    fs.writeSync(REPLY_FD, Buffer.from([2, 0, 0, 0, 0, 0, 0, 0, 123, 125]));
    for (;;);
  },
  throw: (message: string) => {
    throw new Error(message);
  },
  'throw later': (message: string) => {
    setTimeout(() => {
      throw new Error(message);
    }, 1);
    return new Promise(() => {});
  },
  'leave a bomb': () => {
    setTimeout(() => {
      throw new Error('bomb');
    }, 50);
    return 'read';
  },
  'leave behind': () => {
    const wasThere = 'canary' in [];
    Object.defineProperty(Array.prototype, 'canary', { value: true, configurable: true });
    return wasThere;
  },
  'reject unseen': async () => {
    void Promise.reject(new Error('unseen'));
    await new Promise((resolve) => setTimeout(resolve, 20));
    return 'read';
  },
  refuse: () => {
    throw new DocumentError('encrypted_document', 'The document is encrypted');
  },
  recurse: () => {
    const recurse = (): number => recurse() + 1;
    return recurse();
  },
  pollute: () => {
    const target = {} as Record<string, object>;
    for (const [key, value] of Object.entries(JSON.parse('{"__proto__":{"polluted":true}}') as object)) {
      for (const [name, polluted] of Object.entries(value as object)) Reflect.set(target[key] ?? {}, name, polluted);
    }
    return 'polluted' in {};
  },
};

function progressFrame(bodyBytes: number): Buffer {
  return Buffer.concat([encodeHead({ kind: 'page', done: 1, pages: 2 }, bodyBytes), Buffer.alloc(bodyBytes)]);
}

await serveParser(async ({ bytes }, onPage) => {
  const [deed, argument] = JSON.parse(Buffer.from(bytes).toString().trim()) as [string, never];
  const text = JSON.stringify((await DEEDS[deed]?.(argument, onPage)) ?? null);
  return {
    text,
    format: 'text',
    title: '',
    authors: [],
    language: null,
    publishedAt: null,
    modifiedAt: null,
    warnings: [],
    omissions: [],
    pages: null,
    characters: text.length,
    tokens: 1,
    outline: [],
    chunks: [{ startOffset: 0, endOffset: text.length, headingPath: [], pageFrom: null, pageTo: null, tokens: 1 }],
  };
});
