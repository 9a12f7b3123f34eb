export const shells = ['sh', 'bash', 'ash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** What is none of them is `sh`. */
export const shellOf = (name: string | null | undefined): Shell =>
  shells.find(shell => shell === name) ?? 'sh'
