const position = /^\d{1,15}$/

/** The place behind the event with this `Last-Event-ID`; undefined for what is none of ours. */
export const readPosition = (text: string | readonly string[] | undefined): number | undefined =>
  typeof text === 'string' && position.test(text) ? Number(text) : undefined
