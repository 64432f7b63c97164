mod calibrated;
mod figures;
mod make;
mod said;
