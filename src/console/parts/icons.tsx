/**
 * SVG paths of the icons in the navigation, on a grid of 18 units. They are decoration, since the name of the page is
 * beside each icon.
 */
const PATHS = {
  ask: 'M8 14a6 6 0 1 1 0-12 6 6 0 0 1 0 12zm4.400-1.600L16 16',
  browse: 'M3 4h12M3 9h12M3 14h8',
  documents: 'M5 2h5.500L14 5.500V16H5zM10 2v4h4M7.500 9.500h4M7.500 12.500h4',
  graph:
    'M4 5.5a1.8 1.8 0 1 0 0-.01M14 4a1.8 1.8 0 1 0 0-.01M10 14a1.8 1.8 0 1 0 0-.01M5.5 6.5l3 6M6 5l6-.7M13 6l-2 6.5',
  standing: 'M4 13V8a5 5 0 0 1 10 0v5l1.500 1.500h-13zM7.500 16.500h3',
  decay: 'M2 3v12h14M4.500 5c2 6 5 8 11 8.500',
  evals: 'M3 9.500l3.500 3.500L15 4.500',
  work: 'M3 15V9h3v6M7.500 15V4h3v11M12 15v-4h3v4',
  admin: 'M2 5h7M13 5h3M11 3v4M2 13h3M9 13h7M7 11v4',
} as const;
/** Names of the icons that `Icon` shows. */
export type IconName = keyof typeof PATHS;

/** Shows an icon of 18 by 18 units in the colour of the text, hidden from screen readers. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      viewBox="0 0 18 18"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
