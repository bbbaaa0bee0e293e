import type { LanguageSet } from '../languages/language-set.ts';
import { FRENCH } from './fr.ts';
import { ITALIAN } from './it.ts';
import { DUTCH } from './nl.ts';
import { POLISH } from './pl.ts';
import { PORTUGUESE } from './pt.ts';

/**
 * The same notes and questions in five languages: 32 memories, 20 questions and 10 questions without an answer each. No
 * constant was chosen on them. They were written after all constants had their values, to see how these do in languages
 * that had no part in the choice.
 */
export const KEPT_ASIDE_SETS: readonly LanguageSet[] = [FRENCH, ITALIAN, DUTCH, POLISH, PORTUGUESE];
