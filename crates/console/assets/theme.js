// Applies the remembered theme before the first paint; as a module, it would run too late.
try {
  const theme = localStorage.getItem("sluicegate.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is blocked: the theme of the system remains.
}
