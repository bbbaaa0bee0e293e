import { expect, test } from 'vitest';
import { readEmail } from '../../../../src/engine/documents/formats/email.ts';

async function read(lines: readonly string[]) {
  return readEmail(Buffer.from(lines.join('\r\n'), 'latin1'), { charset: null, extension: 'eml' });
}

const HEAD = [
  'From: =?utf-8?Q?Ann_M=C3=BCller?= <ann@example.org>',
  'To: bob@example.org, "Team: A" <team@example.org>',
  'Cc: Friends: c@example.org, d@example.org;',
  'Subject: =?iso-8859-1?Q?Gr=FC=DFe?= from',
  ' the hut',
  'Date: Mon, 06 May 2024 10:00:00 +0200',
  'MIME-Version: 1.0',
];

test('says who wrote what to whom and when, and keeps what it quotes', async () => {
  const document = await read([
    ...HEAD,
    'Content-Type: text/plain; charset=koi8-r',
    'Content-Transfer-Encoding: quoted-printable',
    '',
    '=F0=D2=C9=D7=C5=D4',
    '> an older line',
  ]);
  expect(document.text).toBe(
    '# Grüße from the hut\n\nFrom: Ann Müller <ann@example.org>\nTo: bob@example.org, Team: A <team@example.org>\n' +
      'Cc: Friends: c@example.org, d@example.org\nDate: 2024-05-06 08:00\n\nПривет\n> an older line',
  );
  expect(document).toMatchObject({
    title: 'Grüße from the hut',
    authors: ['Ann Müller'],
    publishedAt: Date.UTC(2024, 4, 6, 8),
    warnings: [],
  });
});

test('HTML is read where there is no text; attachments are counted and not named', async () => {
  const document = await read([
    ...HEAD,
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b',
    'Content-Type: text/html; charset=utf-8',
    '',
    '<h2>News</h2><p>A <b>hut</b> was built.</p><script>alert(1)</script><p style="display:none">Act now</p>',
    '--b',
    'Content-Type: application/pdf; name="secret plan.pdf"',
    'Content-Disposition: attachment; filename="secret plan.pdf"',
    'Content-Transfer-Encoding: base64',
    '',
    'JVBERi0=',
    '--b--',
  ]);
  expect(document.text).toMatch(/## News\n\nA hut was built\.$/);
  expect(document.text).not.toContain('alert');
  expect(document.warnings).toEqual([
    { code: 'attachment_ignored', message: '1 attachment was not read.' },
    { code: 'hidden_text_dropped', message: 'Left out: 1 part of the text that its markup hides.' },
  ]);
  expect(document.omissions).toEqual([{ reason: 'hidden_text', count: 1, characters: 6 }]);
});

test('the text is preferred to the HTML that says the same', async () => {
  const { text } = await read([
    ...HEAD,
    'Content-Type: multipart/alternative; boundary=b',
    '',
    '--b',
    'Content-Type: text/plain',
    '',
    'plain words',
    '--b',
    'Content-Type: text/html',
    '',
    '<p>marked words</p>',
    '--b--',
  ]);
  expect(text).toMatch(/\n\nplain words$/);
});

test('parts within parts within parts are refused', async () => {
  const parts = Array.from({ length: 300 }, (_, level) => [
    `Content-Type: multipart/mixed; boundary=b${level}`,
    '',
    `--b${level}`,
  ]);
  await expect(read(['From: a@example.org', ...parts.flat(), '', 'deep'])).rejects.toMatchObject({
    code: 'document_too_complex',
  });
});

test.each([
  ['ends with its head', ['From: ann@example.org', 'Subject: Call me'], '# Call me\n\nFrom: ann@example.org'],
  [
    'begins with empty lines',
    ['', '', 'From: ann@example.org', 'Subject: Call me', ''],
    '# Call me\n\nFrom: ann@example.org',
  ],
  ['has empty fields', ['From:', 'Subject:', ''], ''],
  ['has other fields alone', ['Message-ID: <1@example.org>', 'X-Mailer: mail', ''], ''],
])('an e-mail without a text that %s is what its fields say', async (_, lines, text) => {
  expect(await read(lines)).toMatchObject({ text });
});

test('a file without a header is no e-mail', async () => {
  await expect(read(['', 'just words'])).rejects.toMatchObject({ code: 'corrupt_document' });
  await expect(read([''])).rejects.toMatchObject({ code: 'corrupt_document' });
  await expect(read(['note: just words', ''])).rejects.toMatchObject({ code: 'corrupt_document' });
});
