import { decodeText } from '../decode-text.ts';
import type { FormatParser } from '../parsed-document.ts';
import { bareDocument } from './bare-document.ts';

/** Source code and markup, exactly as it stands in the file. */
export const readCode: FormatParser = async (bytes, { charset }) => {
  const { text, warnings } = await decodeText(bytes, charset);
  return bareDocument(text, { warnings });
};
