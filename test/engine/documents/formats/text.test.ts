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
