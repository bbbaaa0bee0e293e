import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readCode } from '../../../../src/engine/documents/formats/code.ts';
import { readMarkdown, readText } from '../../../../src/engine/documents/formats/text.ts';

const OPTIONS = { charset: null, extension: '' };

test.each([
  ['What is a cairn?\n\nA pile of stones.', 'What is a cairn?'],
  ['  On cairns\n=========\nA pile of stones.', 'On cairns'],
  ['A pile of stones.\n\nIt marks a way.', ''],
  ['A pile of stones\nthat marks a way.', ''],
  ['12:30\n\nlunch', ''],
  [`${'word '.repeat(40)}\n\nx`, ''],
  ['', ''],
])('the first line of a text is its title where it looks like one: %j', async (text, title) => {
  expect(await readText(Buffer.from(text), OPTIONS)).toMatchObject({ text, title, pages: [] });
});

test('text and code stand exactly as in the file', async () => {
  await fc.assert(
    fc.asyncProperty(fc.stringMatching(/^[ -~äé世\n\t]*$/), async (text) => {
      expect((await readText(Buffer.from(text), OPTIONS)).text).toBe(text);
      expect(await readCode(Buffer.from(text), OPTIONS)).toMatchObject({ text, title: '' });
    }),
  );
});

test('front matter says what the document is, and is no part of its text', async () => {
  const file = `---
title: "Stones: a guide"   # working title
author:
  - Ann
  - 'Bob: the builder'
date: 2024-05-06
lastmod: 2024-06-01T10:00:00Z
lang: pt-BR
tags: [a, b]
---

# Another heading
`;
  expect(await readMarkdown(Buffer.from(file), OPTIONS)).toMatchObject({
    text: '# Another heading\n',
    title: 'Stones: a guide',
    authors: ['Ann', 'Bob: the builder'],
    language: 'pt-BR',
    publishedAt: Date.UTC(2024, 4, 6),
    modifiedAt: Date.UTC(2024, 5, 1, 10),
  });
});

test.each([
  ['---\n\nText between rules.\n\n---\n\nmore', ''],
  ['---\nText between rules: it has a colon\nand a second line\n---\nmore', ''],
  ['---\ntitle: never closed\n', ''],
  ['Intro\n\n---\ntitle: x\n---\n', ''],
])('what is no front matter stays in the text: %j', async (text, title) => {
  expect(await readMarkdown(Buffer.from(text), OPTIONS)).toMatchObject({ text, title, authors: [] });
});

test.each([
  ['text\n\n# The *title* of [this](http://x.example) #\n\n# Second', 'The title of this'],
  ['```\n# a comment\n```\n\nUnderlined `title`\n===\n', 'Underlined title'],
  ['~~~sh\n```\n# a comment\n~~~\n# Right', 'Right'],
  ['## Second level only', ''],
  ['#hashtag', ''],
])('the title of Markdown is its first heading: %j', async (text, title) => {
  expect((await readMarkdown(Buffer.from(text), OPTIONS)).title).toBe(title);
});

test.each([
  ['a comment', '<!-- do this -->', 1],
  ['a comment without end', '<!-- do this', 1],
  [
    'an element that hides',
    '<div class="a"\nstyle="color:red;display:none">x</div> <p hidden>y</p> <b aria-hidden="true">',
    3,
  ],
  ['letters that no font shows', 'a \u{e0041}\u{e0042} b', 1],
  ['an override of direction', 'a \u202eb', 1],
  ['no width within a word', 'pass\u200bword', 1],
  ['a code of characters without width', ' \u200b\u200c\u200b\u200c ', 1],
  ['what is code', '`<!-- a -->`\n\n```html\n<!-- b --><p hidden>\n```', 0],
  ['what is shown', '<p style="color:red" data-hidden="hidden">x</p> <b aria-hidden="false"> <!---->', 0],
  ['what emoji, flags and Persian are made of', '👩‍👩‍👧 \u{1f3f4}\u{e0067}\u{e0062}\u{e007f} می\u200cخواهم', 0],
])('hidden text in Markdown is kept and reported: %s', async (_, text, places) => {
  const { text: kept, warnings } = await readMarkdown(Buffer.from(text), OPTIONS);
  expect(kept).toBe(text);
  const where = places === 1 ? '1 place,' : `${places} places,`;
  expect(warnings).toEqual(
    places === 0 ? [] : [{ code: 'hidden_text_found', message: expect.stringContaining(where) as string }],
  );
});

test('in plain text markup is seen, and what has no width is not', async () => {
  const codes = async (text: string) => (await readText(Buffer.from(text), OPTIONS)).warnings.map(({ code }) => code);
  expect(await codes('<!-- seen -->')).toEqual([]);
  expect(await codes('pass\u200bword')).toEqual(['hidden_text_found']);
});

test('a text that was sent in base64 without saying so is reported', async () => {
  const codes = async (text: string) => (await readText(Buffer.from(text), OPTIONS)).warnings.map(({ code }) => code);
  const encoded = (text: string) => Buffer.from(text).toString('base64');
  expect(await codes(encoded('Words in base64, café. '.repeat(10)))).toEqual(['base64_text']);
  expect(await codes(encoded('Words that go on é. '.repeat(5_000)))).toEqual(['base64_text']);
  expect(await codes('supercalifragilistic'.repeat(10))).toEqual([]);
  expect(await codes('Words in base64')).toEqual([]);
});
