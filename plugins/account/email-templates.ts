import type { EmailContent } from 'busbar/api/mail'

export const passwordResetEmail = (url: string): EmailContent => ({
  subject: 'Reset your Busbar password',
  paragraphs: [
    'A new password was requested for your account on Busbar.',
    'Choose one with the link below. It works once and for 30 minutes; using it signs you out everywhere and ends your access tokens.'
  ],
  link: { label: 'Choose a new password', url },
  note: 'If it was not you, do nothing: your password stays as it is.'
})
