/** Where a reader of a build log is: behind so many lines of the piece with this number. */
export interface BuildLogPlace {
  readonly seq: number
  readonly lines: number
}

const placeText = /^(\d{1,9})(?:\.(\d{1,9}))?$/

/** The id of the event that a line is: what a reader shows as `Last-Event-ID` when it comes again. */
export const eventIdOf = ({ seq, lines }: BuildLogPlace): string => `${seq}.${lines}`

/** `3.2` for the place behind the second line of the fourth piece, `0` for the beginning; undefined for anything else. */
export function readEventId(text: string | readonly string[] | undefined): BuildLogPlace | undefined {
  const match = typeof text === 'string' ? placeText.exec(text) : null
  return match === null ? undefined : { seq: Number(match[1]), lines: Number(match[2] ?? 0) }
}
