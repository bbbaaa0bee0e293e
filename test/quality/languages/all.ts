import { ARABIC } from './ar.ts';
import { GERMAN } from './de.ts';
import { ENGLISH } from './en.ts';
import { SPANISH } from './es.ts';
import { JAPANESE } from './ja.ts';
import { KOREAN } from './ko.ts';
import { RUSSIAN } from './ru.ts';
import { THAI } from './th.ts';
import { TURKISH } from './tr.ts';
import { CHINESE } from './zh.ts';
import type { LanguageSet } from './language-set.ts';

/** The project's sets of all languages, each written in its language and not translated. */
export const LANGUAGE_SETS: readonly LanguageSet[] = [
  ARABIC,
  GERMAN,
  ENGLISH,
  SPANISH,
  JAPANESE,
  KOREAN,
  RUSSIAN,
  THAI,
  TURKISH,
  CHINESE,
];
