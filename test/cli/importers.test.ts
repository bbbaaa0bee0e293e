import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import yazl from 'yazl';
import { formatOf } from '../../src/cli/importers/formats.ts';
import { jsonParts, type JsonPart } from '../../src/cli/json-parts.ts';
import { openSource } from '../../src/cli/open-source.ts';
import { writeMarkdown } from '../../src/cli/write-markdown.ts';
import { createRandom } from '../../src/engine/random.ts';
import { chooseSeed } from '../support/add-checker.ts';
import { importFrom, importJson, textsOf } from '../support/import-from.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** What importers bring over, and that they count all else by name. */

test('texts of every kind of content of ChatGPT come over, and parts without text are counted by their types', async () => {
  const contents: object[] = [
    { content_type: 'text', parts: ['Where is the heron?'] },
    { content_type: 'code', language: 'python', text: 'print("heron")' },
    { content_type: 'thoughts', thoughts: [{ summary: 'Herons', content: 'They stand in water.' }] },
    { content_type: 'reasoning_recap', content: 'Thought for 5 seconds' },
    { content_type: 'execution_output', text: 'heron\n' },
    { content_type: 'tether_quote', title: 'Birds', url: 'https://birds.example', text: 'A quoted heron.' },
    { content_type: 'tether_browsing_display', result: 'A page about herons.', summary: 'Short.' },
    {
      content_type: 'multimodal_text',
      parts: [
        { content_type: 'image_asset_pointer', asset_pointer: 'file-service://x' },
        { content_type: 'audio_transcription', text: 'Look at the heron.' },
        'What is this bird?',
      ],
    },
    { content_type: 'hologram', frames: 3 },
    { content_type: 'text', parts: [''] },
  ];
  const ids = ['root', ...contents.map((_, at) => `n${at}`)];
  const mapping = Object.fromEntries(
    ids.map((id, at) => [
      id,
      {
        ...{ id, parent: ids[at - 1] ?? null },
        message: at === 0 ? null : { id, author: { role: 'user' }, create_time: 1.7e9 + at, content: contents[at - 1] },
      },
    ]),
  );
  const outcome = await importJson('chatgpt', [{ id: 'k', title: 'Heron', mapping, current_node: ids.at(-1) }]);
  expect(textsOf(outcome)).toEqual([
    'Where is the heron?',
    'print("heron")',
    'Herons\nThey stand in water.',
    'Thought for 5 seconds',
    'heron',
    'A quoted heron.',
    'A page about herons.\nShort.',
    'Look at the heron.\nWhat is this bird?',
  ]);
  expect(outcome.skipped).toEqual({
    'a part without text: image_asset_pointer (what it belongs to is imported)': 1,
    'without text: hologram': 1,
    'without text': 1,
  });
  expect(outcome.lines[1]).toMatchObject({ metadata: { content_type: 'code', role: 'user', conversation: 'Heron' } });
});

test('attachments, thoughts and summaries of Claude come over', async () => {
  const message = {
    ...{ uuid: 'm1', sender: 'human', text: 'See the file.', created_at: 'some day' },
    content: [
      { type: 'text', text: 'See the file.' },
      { type: 'thinking', thinking: 'A file about otters.' },
      { type: 'tool_use', name: 'search', input: {} },
    ],
    attachments: [
      { file_name: 'otters.txt', file_type: 'txt', extracted_content: 'Otters sleep hand in hand.' },
      { file_name: 'empty.bin', file_type: 'bin', extracted_content: '' },
    ],
    files: [{ file_name: 'otter.png' }],
  };
  const chat = { uuid: 'u1', name: 'Otters', summary: 'About otters.', created_at: '2025-01-01T00:00:00Z' };
  const outcome = await importJson('claude', [{ ...chat, chat_messages: [message] }]);
  expect(textsOf(outcome)).toEqual([
    'See the file.\nA file about otters.',
    'Otters sleep hand in hand.',
    'About otters.',
  ]);
  expect(outcome.lines[1]).toMatchObject({
    external_id: 'claude:m1:file:0',
    session_id: 'u1',
    memory_type: 'attachment',
    event_time: Date.UTC(2025),
    metadata: { file_name: 'otters.txt', role: 'user' },
  });
  expect(outcome.skipped).toEqual({
    'a part without text: tool_use (what it belongs to is imported)': 1,
    'an attached file without text: bin (what it belongs to is imported)': 1,
    'an attached file without text: of no type (what it belongs to is imported)': 1,
    'a date that is none (what it belongs to is imported)': 1,
  });
});

test('what mem0 and Zep say and Cairn has no place for is counted by name', async () => {
  const record = {
    ...{ id: '1', memory: 'Likes plums.', text: 'Older words.', user_id: 'ana', agent_id: 'bot', app: 'chat' },
    ...{ state: 'paused', metadata: { sector: 'kitchen', place: 1 }, score: 0.5, hash: null },
    ...{ created_at: 'once', categories: Array.from({ length: 66 }, (_, no) => `tag ${no}`) },
  };
  const ofMem0 = await importJson('mem0', [record]);
  expect(ofMem0.lines).toMatchObject([
    { content: 'Likes plums.', metadata: { source_sector: 'kitchen', place: 1, agent_id: 'bot', state: 'paused' } },
  ]);
  expect([...ofMem0.passedOver].sort()).toEqual(['app', 'score', 'text']);
  expect(ofMem0.skipped).toEqual({
    'a tag beyond the first 64 (what it belongs to is imported)': 2,
    'a date that is none (what it belongs to is imported)': 1,
  });
  const said = { uuid: 'z', role: 'Ana', role_type: 'user', content: 'Hello.', token_count: 2 };
  const session = { session_id: 's', uuid: 'u', metadata: { a: 1 }, created_at: '2025-01-01', messages: [said] };
  const ofZep = await importJson('zep', [session]);
  expect(ofZep.lines).toMatchObject([{ session_id: 's', metadata: { role: 'Ana', role_type: 'user' } }]);
  expect([...ofZep.passedOver].sort()).toEqual(['created_at', 'metadata', 'token_count', 'uuid']);
});

test("the archive of mem0's OpenMemory is known, and its records are read once", async () => {
  const record = (id: string, state: string) => ({
    ...{ id, content: `Memory ${id}.`, state, app: 'cursor', categories: ['food'] },
    ...{ created_at: '2025-01-01T00:00:00Z', updated_at: null, metadata: { place: 1 } },
  });
  const records = [record('1', 'active'), record('2', 'deleted'), record('3', 'archived')];
  const zip = new yazl.ZipFile();
  zip.addBuffer(gzipSync(records.map((one) => `${JSON.stringify(one)}\n`).join('')), 'memories.jsonl.gz');
  zip.addBuffer(Buffer.from(JSON.stringify({ user: {}, memories: records })), 'memories.json');
  zip.end();
  const file = path.join(tempFolder(), 'openmemory.zip');
  fs.writeFileSync(file, await buffer(zip.outputStream));
  const opened = await openSource(file);
  expect(formatOf(opened)?.name).toBe('mem0');
  opened.close();
  const outcome = await importFrom('mem0', file);
  expect(outcome.lines).toMatchObject([
    { content: 'Memory 1.', tags: ['food'], metadata: { place: 1, agent_id: 'cursor' } },
    { content: 'Memory 3.', status: 'archived', metadata: { state: 'archived' } },
  ]);
  expect(outcome.skipped).toEqual({ 'the same memories in another form': 1, deleted: 1 });
});

test('a file of an archive has a bound when it is unpacked, and so has gzip in it', async () => {
  const records = `{"id":"1","memory":"First."}\n${' '.repeat(1_000_000)}\n`;
  const zip = new yazl.ZipFile();
  zip.addBuffer(Buffer.from(records), 'memories.jsonl');
  zip.addBuffer(gzipSync(records), 'memories.jsonl.gz');
  zip.end();
  const file = path.join(tempFolder(), 'bomb.zip');
  fs.writeFileSync(file, await buffer(zip.outputStream));
  const unpacked = async (wanted: string, mostUnpacked: number) => {
    const source = await openSource(file, { mostUnpacked });
    let characters = 0;
    try {
      for await (const { texts } of source.files((name) => name === wanted))
        for await (const text of texts()) characters += text.length;
    } finally {
      source.close();
    }
    return characters;
  };
  for (const name of ['memories.jsonl', 'memories.jsonl.gz']) {
    expect(await unpacked(name, records.length)).toBe(records.length);
    await expect(unpacked(name, records.length - 1)).rejects.toThrow(`${name} in ${file} is over`);
  }
});

test('a record that is nested too deeply costs no other record', async () => {
  const folder = tempFolder();
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
  const importText = async (format: string, text: string) => {
    fs.writeFileSync(path.join(folder, 'records.json'), text);
    return importFrom(format, path.join(folder, 'records.json'));
  };
  const ofMem0 = await importText(
    'mem0',
    `[{"id":"1","memory":"Deep.","metadata":{"a":${nested(50_000)}}},` +
      `{"id":"2","memory":"Flat.","metadata":{"a":${nested(63)}}}]`,
  );
  expect(textsOf(ofMem0)).toEqual(['Deep.', 'Flat.']);
  expect(ofMem0.lines.map(({ metadata }) => Object.keys(metadata as object))).toEqual([[], ['a']]);
  expect(ofMem0.skipped).toEqual({ 'metadata that is nested too deeply (what it belongs to is imported)': 1 });
  const item = (key: string, value: string) => `{"namespace":["a"],"key":"${key}","value":${value}}`;
  const values = [nested(50_000), nested(65), nested(64)].map((value, at) => item(`k${at}`, value));
  const ofStore = await importText('langgraph', values.join('\n'));
  expect(ofStore.lines.map((line) => line['item'])).toEqual([{ namespace: 'a', key: 'k2' }]);
  expect(ofStore.skipped).toEqual({ 'a value that is nested too deeply': 2 });
});

// ── Notes ────────────────────────────────────────────────────────────────────────────────────────────────────────────

function writeNotes(notes: Readonly<Record<string, string | Buffer>>): string {
  const folder = tempFolder();
  for (const [name, text] of Object.entries(notes)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), text);
  }
  return folder;
}

test('front matter of notes comes over whole, every wikilink counts, and odd dates are told', async () => {
  const folder = writeNotes({
    'Boat.md':
      '---\ntitle: Boat\nkeeper:\n  name: Ana\n  ports: [A, B]\nrelated: "[[Pier]]"\ncreated: last spring\n---\n\n' +
      '- moored_at [[Pier]] beside [[Crane]] and [[crane.md|the crane]]\n- [fact] Green, see [[Gull]] #colour\n',
    'Pier.md': '---\ntitle: Pier: the long one\nsector: north\n---\n\nSee [[Boat]] and [[Gull#Nest|the nest]].\n',
    'Crane.md': 'A crane.\n',
    'Gull.md': Buffer.concat([Buffer.from('A g'), Buffer.from([0xff]), Buffer.from('ll.\n')]),
  });
  const outcome = await importFrom('notes', folder);
  const [boat, fact, , , pier] = outcome.lines;
  expect(boat).toMatchObject({
    title: 'Boat',
    created_at: null,
    metadata: { keeper: { name: 'Ana', ports: ['A', 'B'] }, related: '[[Pier]]', created: 'last spring' },
  });
  expect(fact).toMatchObject({ content: 'Green, see [[Gull]] #colour', tags: ['colour'] });
  expect(pier).toMatchObject({ title: 'Pier: the long one', metadata: { source_sector: 'north' } });
  const titleOf = (id: unknown) => {
    const found = outcome.lines.find((line) => line['id'] === id)!;
    return found === fact ? 'fact' : String(found['title']);
  };
  const links = outcome.lines.filter(({ type }) => type === 'link');
  expect(links.map((link) => [link['src'], link['dst']].map(titleOf).join(' > ')).sort()).toEqual([
    'Boat > Crane',
    'Boat > Gull',
    'Boat > Pier: the long one',
    'Pier: the long one > Boat',
    'Pier: the long one > Gull',
    'fact > Boat',
  ]);
  expect(outcome.skipped).toEqual({
    'a date that is none (what it belongs to is imported)': 1,
    'bytes that are no UTF-8 (what it belongs to is imported)': 1,
    'front matter that is no YAML, of which plain lines are read (what it belongs to is imported)': 1,
  });
});

test('front matter that contains itself costs no other note, and no word of a relation is taken for another', async () => {
  const folder = writeNotes({
    'Boat.md': '---\nx: &r [*r, *r]\nkeeper: Ana\n---\n\nA boat.\n',
    'Pier.md': 'A pier.\n\n- constructor [[Boat]]\n- __proto__ [[Crane]]\n- requires [[Gull]]\n',
    'Crane.md': 'A crane.\n',
    'Gull.md': 'A gull.\n',
  });
  const outcome = await importFrom('notes', folder);
  const memories = outcome.lines.filter(({ type }) => type === 'memory');
  expect(memories.map(({ title, metadata }) => [title, metadata])).toEqual([
    ['Boat', {}],
    ['Crane', {}],
    ['Gull', {}],
    ['Pier', {}],
  ]);
  expect(outcome.skipped).toEqual({ 'metadata that is nested too deeply (what it belongs to is imported)': 1 });
  const links = outcome.lines.filter(({ type }) => type === 'link');
  expect(links.map((link) => link['link_type'])).toEqual(['mentions', 'mentions', 'depends_on']);
});

test('metadata survives a Markdown export and its import, whatever its names', async () => {
  const folder = path.join(tempFolder(), 'notes');
  const metadata = { title: 'not the title', nested: { list: [1, { deep: 'é' }] }, 'odd key': '"' };
  const memory = { type: 'memory', id: 'a1', content: 'The boat is green.', title: 'Boat', metadata, tags: ['x'] };
  await writeMarkdown(folder, Readable.from([Buffer.from(`${JSON.stringify(memory)}\n`)]));
  const { lines, skipped } = await importFrom('notes', folder);
  const { title, ...others } = metadata;
  expect(lines).toMatchObject([{ title: 'Boat', tags: ['x'], metadata: { ...others, metadata: { title } } }]);
  expect(skipped).toEqual({});
});

test('items keep their namespace, key and value in a Markdown export, and its import makes them items again', async () => {
  const folder = path.join(tempFolder(), 'notes');
  const item = { namespace: 'settings.editor', key: 'theme: "dark"' };
  const value = { theme: ['dark', 1, null], on: false };
  const longValue = { text: 'A line\u2028 of a long value\u0085\n. '.repeat(7_000) };
  const lines = [
    { type: 'memory', id: 'a1', content: 'theme: dark', item: { ...item, ttl_ms: 60_000 }, value },
    { type: 'memory', id: 'a2', content: 'off', item: { ...item, key: 'sound' }, value: false },
    { type: 'memory', id: 'a3', content: 'no item', metadata: { item: 'a word', value: 3 } },
    { type: 'memory', id: 'a4', content: '', item: { namespace: '', key: 'empty' }, value: '' },
    { type: 'memory', id: 'a5', content: 'long', item: { namespace: '', key: 'long' }, value: longValue },
  ];
  await writeMarkdown(folder, Readable.from([Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))]));
  const { lines: read, skipped } = await importFrom('notes', folder);
  expect(skipped).toEqual({});
  expect(read).toMatchObject([
    { content: expect.stringMatching(/^theme: dark\s*$/) as string, item, value, metadata: {} },
    { item: { namespace: 'settings.editor', key: 'sound' }, value: false, metadata: {} },
    { external_id: 'a3', metadata: { metadata: { item: 'a word', value: 3 } } },
    { content: '', item: { namespace: '', key: 'empty' }, value: '' },
    { content: expect.stringMatching(/^long\s*$/) as string, item: { key: 'long' }, value: longValue, metadata: {} },
  ]);
  expect(read[2]).not.toHaveProperty('item');
});

test('names that are cut keep whole emojis', async () => {
  const folder = path.join(tempFolder(), 'cut');
  const memory = { type: 'memory', id: 'a1', content: `${'a'.repeat(79)}😀 and more`, title: '', tags: [] };
  await writeMarkdown(folder, Readable.from([Buffer.from(`${JSON.stringify(memory)}\n`)]));
  const [file] = fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const note = fs.readFileSync(path.join(file!.parentPath, file!.name), 'utf8');
  expect(note).toContain(`title: "${'a'.repeat(79)}"`);

  const item = { id: 'b1', memory: 'The boat is green.', categories: [`${'b'.repeat(127)}😀`] };
  const { lines } = await importJson('mem0', [item]);
  expect(lines).toMatchObject([{ tags: expect.arrayContaining(['b'.repeat(127)]) as string[] }]);
});

const seed = chooseSeed();

test(`a folder of notes that is damaged at random keeps all other notes, and is read the same twice (seed ${seed})`, async () => {
  const random = createRandom(seed);
  const notes = Object.fromEntries(
    Array.from({ length: 8 }, (_, no) => [
      `sub${no % 2}/Note ${no}.md`,
      `---\ntitle: "Lamp ${no}"\ntags: [lamp, "älteste"]\nkeeper:\n  no: ${no}\n---\n\n` +
        `Light token${no} shines.\n- [fact] The lamp ${no} is old #lamp\n- supports [[Lamp ${(no + 1) % 8}]]\n`,
    ]),
  );
  const folder = writeNotes(notes);
  const sound = await importFrom('notes', folder);
  expect([sound.lines.length, sound.skipped, sound.damages]).toEqual([8 * 2 + 8 * 2, {}, []]);
  const names = Object.keys(notes);
  for (let round = 0; round < 150; round += 1) {
    const hit = Math.floor(random() * names.length);
    const file = path.join(folder, names[hit]!);
    const whole = Buffer.from(notes[names[hit]!]!);
    const at = Math.floor(random() * whole.length);
    const damaged = round % 2 === 0 ? whole.subarray(0, at) : Buffer.from(whole);
    if (round % 2 === 1) damaged[at] = (damaged[at]! + 1 + Math.floor(random() * 250)) % 256;
    fs.writeFileSync(file, damaged);
    const outcome = await importFrom('notes', folder);
    const name = `round ${round}: ${round % 2 === 0 ? 'cut' : String(damaged[at])} at ${at}`;
    const texts = textsOf(outcome).join('\n');
    const lost = names.flatMap((_, no) => (texts.includes(`token${no} `) ? [] : [no]));
    expect({ name, lost: lost.filter((no) => no !== hit) }).toEqual({ name, lost: [] });
    // The note that was hit is there as far as it goes, or counted.
    const isThere = outcome.lines.some((line) => line['external_id'] === names[hit]!.replace(/\.md$/, ''));
    expect({ name, isTold: isThere || Object.keys(outcome.skipped).length > 0 }).toEqual({ name, isTold: true });
    const again = await importFrom('notes', folder);
    expect({ name, lines: again.lines }).toEqual({ name, lines: outcome.lines });
    fs.writeFileSync(file, whole);
  }
});

// ── Parts of long objects ────────────────────────────────────────────────────────────────────────────────────────────

test('the entries of a field are cut out of any pieces, the rest of each object behind them', async () => {
  const read = async (text: string, size: number) => {
    const pieces = async function* () {
      for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
    };
    const damages: string[] = [];
    const parts: JsonPart[] = [];
    const file = { name: 'x', field: 'mapping', onDamage: (message: string) => void damages.push(message) };
    for await (const part of jsonParts(pieces(), file)) parts.push(part);
    return { parts, damages };
  };
  const objects = [
    {
      title: 'a "mapping" \\',
      mapping: { 'k"1\\': { text: '}],{"[' }, k2: null, k3: { mapping: { x: 1 } } },
      last: 'k2',
    },
    { mapping: [1, { a: [] }], other: ['mapping', { b: 1 }] },
    { id: 'none' },
  ];
  const parts = [
    { item: 0, key: 'k"1\\', part: { text: '}],{"[' } },
    { item: 0, key: 'k2', part: null },
    { item: 0, key: 'k3', part: { mapping: { x: 1 } } },
    { item: 0, rest: { title: 'a "mapping" \\', mapping: {}, last: 'k2' } },
    { item: 1, key: '', part: 1 },
    { item: 1, key: '', part: { a: [] } },
    { item: 1, rest: { mapping: [], other: ['mapping', { b: 1 }] } },
    { item: 2, rest: { id: 'none' } },
  ];
  for (const size of [1, 2, 3, 7, 1_000]) {
    expect(await read(JSON.stringify(objects), size)).toEqual({ parts, damages: [] });
    expect(await read(JSON.stringify(objects, null, 2), size)).toEqual({ parts, damages: [] });
    expect(await read('[{"mapping":{"a":1,oops,"b":2}},nothing,[1],\n{"c":3}]', size)).toEqual({
      parts: [
        { item: 0, key: 'a', part: 1 },
        { item: 0, key: 'b', part: 2 },
        { item: 0, rest: { mapping: {} } },
        { item: 3, rest: { c: 3 } },
      ],
      damages: [
        'x: part 2 of item 1, on line 1, is no JSON',
        'x: item 2, on line 1, is no JSON',
        'x: item 3, on line 1, is no object',
      ],
    });
    await expect(read('[{"mapping":{"a":"b\\', size)).rejects.toThrow('x was cut: it ends after 0 items');
    await expect(read('12', size)).rejects.toThrow('x holds no items');
  }
  const long = `[{"mapping":{"a":"${'x'.repeat(17 * 2 ** 20)}","b":2}}]`;
  expect(await read(long, 2 ** 16)).toEqual({
    parts: [
      { item: 0, key: 'b', part: 2 },
      { item: 0, rest: { mapping: {} } },
    ],
    damages: ['x: part 1 of item 1, on line 1, is longer than 16 Mi characters'],
  });
});

test('conversations of 37 MB each are not held in memory', async () => {
  const file = path.join(tempFolder(), 'conversations.json');
  const messages = writeConversations(file, 2, 37_500_000);
  const cli = path.resolve(import.meta.dirname, '../../src/cli');
  const program = `
    const { openSource } = await import('${cli}/open-source.ts');
    const { formatNamed } = await import('${cli}/importers/formats.ts');
    const context = { source: await openSource(${JSON.stringify(file)}), read() {}, skip() {}, passOver() {}, damaged() {} };
    let lines = 0;
    for await (const line of formatNamed('chatgpt').lines(context)) lines += 1;
    console.log(lines);`;
  // 60 MB of heap are enough; an importer that holds a whole conversation runs out of 150.
  const heap = '--max-old-space-size=100';
  const { stdout } = await promisify(execFile)(process.execPath, [heap, '--input-type=module', '--eval', program]);
  expect(Number(stdout)).toBe(messages);
}, 600_000);

/** Writes conversations of ChatGPT, each of some bytes. @returns the number of their messages */
function writeConversations(file: string, conversations: number, bytes: number): number {
  const out = fs.openSync(file, 'w');
  const words = 'The heron stands at the weir and waits for trout, while the keeper of the lamp reads.';
  let all = 0;
  for (let no = 0; no < conversations; no += 1) {
    fs.writeSync(out, `${no === 0 ? '[' : ','}{"title":"Chat ${no}","mapping":{"root":{"message":null}`);
    let parent = 'root';
    for (let size = 0; size < bytes; all += 1) {
      const id = `m${all}`;
      const content = { content_type: 'text', parts: [`${all} ${words}é`] };
      const message = { id, author: { role: 'user' }, create_time: 1.7e9 + all, content };
      const node = `,"${id}":${JSON.stringify({ id, parent, message })}`;
      fs.writeSync(out, node);
      size += node.length;
      parent = id;
    }
    fs.writeSync(out, `},"current_node":"${parent}","conversation_id":"c${no}"}`);
  }
  fs.writeSync(out, ']');
  fs.closeSync(out);
  return all;
}
