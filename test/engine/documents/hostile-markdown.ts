/** Documents of about a given length (UTF-16 units) that are hard on a scanner of Markdown or on a tokenizer. */
export const HOSTILE_MARKDOWN: Readonly<Record<string, (length: number) => string>> = {
  'base64 without a blank': (length) => letters(length),
  'base64 in lines': (length) => letters(length).replace(/.{76}/g, '$&\n'),
  'code that never ends': (length) => `\`\`\`\n${'let x = 1;\n'.repeat(length / 11)}`,
  'code of one line': (length) => `\`\`\`\n${'x=1;'.repeat(length / 4)}\n\`\`\`\n`,
  'fences only': (length) => '```\n'.repeat(length / 4),
  'fences of the size of a chunk': (length) => `\`\`\`\n${'x = 1\n'.repeat(500)}\`\`\`\n`.repeat(length / 3_008),
  headings: (length) => '# a\n'.repeat(length / 4),
  'hash signs': (length) => '#'.repeat(length),
  'headings of one line': (length) => `# ${'long '.repeat(length / 5)}\n`,
  underlines: (length) => 'a\n===\n'.repeat(length / 6),
  'one long underline': (length) => `a\n${'='.repeat(length)}`,
  'one table': (length) => `|a|b|\n|-|-|\n${'|1|2|\n'.repeat(length / 6)}`,
  'a table of one row': (length) => `|a|b|\n|-|-|\n|${'cell '.repeat(length / 5)}|\n`,
  'rows of the size of a chunk': (length) => `|a|\n|-|\n${`|${'cell '.repeat(1_500)}|\n`.repeat(length / 7_503)}`,
  'rules of a table': (length) => 'a|b\n-|-\n'.repeat(length / 8),
  'nested lists': (length) => `${' '.repeat(40)}- a\n`.repeat(length / 44),
  'nested quotes': (length) => `${'>'.repeat(length / 2)}\n`.repeat(2),
  'stars and blanks': (length) => '* '.repeat(length / 2),
  'indented code': (length) => '    x\n\n'.repeat(length / 7),
  'blanks, then words': (length) => `${' '.repeat(2_000)}${'word '.repeat(400)}`.repeat(length / 4_000),
  'dense and sparse': (length) =>
    `${'\u00a0'.repeat(3_000)}${'.'.repeat(3_000)}${'好'.repeat(500)}\n`.repeat(length / 6_501),
  'blanks of two kinds': (length) => '\u00a0 '.repeat(length / 2),
  'controls and brackets': (length) => '\u0001['.repeat(length / 2),
  'family emoji': (length) => '👨‍👩‍👧‍👦'.repeat(length / 11),
  flags: (length) => '🇫🇷'.repeat(length / 4),
};

/** Makes letters and digits that are the same in every call, and of which no part can be compressed. */
function letters(length: number): string {
  let state = 1;
  let text = '';
  while (text.length < length) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9;
    text += (state >>> 0).toString(36);
  }
  return text.slice(0, length);
}
