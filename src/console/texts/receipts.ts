/** Texts of receipts of deletes and of documents. */
import { many } from './many.ts';

export const receipts = {
  about:
    'Each delete leaves a receipt without any text: what was erased, when and by whom, with salted hashes of its ' +
    'words. The receipts are a chain: none can be changed or taken out unnoticed.',
  empty: 'Nothing was forgotten yet',
  emptyAbout: 'Forget a memory on its page, or delete a document: its receipt appears here.',
  columns: ['No.', 'When', 'What', 'Key', 'Erased', 'Receipt'],
  open: 'running',
  show: 'Show the receipt',
  one: (no: number | null) => (no === null ? 'Receipt of a delete that has not ended' : `Receipt ${no}`),
  all: 'All receipts',
  gone: 'There is no such receipt.',
  id: 'Id',
  kind: 'What was deleted',
  by: 'By the conditions',
  key: 'Asked for by',
  begun: 'Begun',
  closed: 'Ended',
  counts: 'Erased',
  searched: 'Searched for traces',
  hashes: 'Hashes',
  hashCounts: (words: number, phrases: number) => `${many(words, 'word')}, ${many(phrases, 'phrase')} of four words`,
  ids: 'Ids of the memories',
  chain: 'Hash in the chain',
  check: 'Check the chain here',
  checkAbout: 'Your browser computes the hash anew, from this receipt and the one before it.',
  holds: 'It holds: the hash follows from this receipt and the one before it.',
  broken: 'It does not hold: this receipt or the one before it was changed.',
  first: 'The receipt before it was removed with its age, so it cannot be computed here.',
  noCrypto: 'Browsers compute hashes for pages of HTTPS and of this machine alone. Use the command below.',
  prove: 'Look for traces in the files',
  proveAbout:
    'On the machine of the service, this looks for the erased words in every byte of the files, and of backups that ' +
    'you name. Put the salt, which the delete told once, behind the dot:',
  token: (number: number) =>
    `Keep ${number === 1 ? 'this' : 'these'}: ${many(number, 'receipt')} with the salt of the hashes, told this once.`,
  command: 'With it anybody can look for what was erased, on the machine of the service:',

  document: 'Which memory holds which part of the text',
  complete: 'complete',
  incomplete: 'incomplete',
  held: (held: string, of: string) => `${held} of ${of} characters are held by memories`,
  spans: ['Characters', 'Memory', 'State'],
  kept: 'kept',
  isNew: 'new',
  changed: 'changed since',
  leftOut: 'Left out of the text',
  omission: (characters: number, times: number) => `${many(characters, 'character')} in ${times}`,
  reasons: {
    running_head: 'repeated heads and page numbers',
    boilerplate: 'what the page has around its article',
    hidden_text: 'text that markup hides',
    front_matter: 'the head of the file, which became metadata',
    control_characters: 'control characters',
    redacted: 'redacted by the privacy policy',
    no_text: 'blanks alone',
  } as Readonly<Record<string, string>>,
  verify: 'Verify it here',
  verified: 'Verified: the text that the service sends has the SHA-256 of the receipt.',
  differs: 'The text that the service sends is not the text of the receipt.',
} as const;
